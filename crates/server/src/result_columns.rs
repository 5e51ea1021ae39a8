//! How do results of continuous queries reach those who want columns?
//!
//! As record batches of one Arrow stream, which leave as soon as a result is there. A result with a row that is
//! too long is an error as a whole.

use hyper::StatusCode;
use jindou_engine::results::{ResultColumns, ResultsError};
use jindou_engine::{Answer, AnswerForm, ContinuousResult, Rows};

use crate::error::Refusal;
use crate::events::{Gone, Reader};

/// What writes the results of a query. Appends the schema.
///
/// # Errors
/// Where its results are none that Arrow holds.
pub(crate) fn columns_of(form: &AnswerForm, out: &mut Vec<u8>) -> Result<ResultColumns, Refusal> {
    let refused = |error: ResultsError| Refusal::new(StatusCode::NOT_ACCEPTABLE, error.to_string());
    ResultColumns::new(form, out).map_err(refused)
}

/// Ends a reader whose columns cannot be written: what it has is cut.
fn cut(error: &ResultsError) -> Gone {
    tracing::error!(%error, "a result cannot be written as Arrow");
    Gone
}

impl Reader {
    /// Writes a result, and sends what there is of it whenever that is much.
    pub(crate) async fn write_columns(
        &mut self,
        result: &ContinuousResult,
        missed: u64,
    ) -> Result<(), Gone> {
        self.columns().begin(result, missed);
        let checked = rows_of(result).and_then(|(removed, added)| {
            let rows = [removed, added].into_iter().flatten();
            let mut checked = rows.map(ResultColumns::check);
            let checked = checked.find_map(Result::err);
            checked.map_or(Ok((removed, added)), |error| Err(error.to_string()))
        });
        match checked {
            Ok((removed, added)) => {
                if let Some(removed) = removed {
                    self.write_rows(removed, true).await?;
                }
                if let Some(added) = added {
                    self.write_rows(added, false).await?;
                }
                self.put(ResultColumns::end)?;
            }
            Err(error) => self.put(|columns, out| columns.fail(&error, out))?,
        }
        self.flush_if_full().await
    }

    async fn write_rows(&mut self, rows: &Rows, are_removed: bool) -> Result<(), Gone> {
        self.put(|columns, out| columns.set_removed(are_removed, out))?;
        for row in rows.iter() {
            self.put(|columns, out| columns.row(row, out))?;
            self.flush_if_full().await?;
        }
        Ok(())
    }

    /// Says in the place of a result why there are no more.
    pub(crate) async fn end_columns(
        &mut self,
        result: &ContinuousResult,
        missed: u64,
        error: &str,
    ) -> Result<(), Gone> {
        self.columns().begin(result, missed);
        self.put(|columns, out| columns.fail(error, out))?;
        self.finish_columns()?;
        self.flush().await
    }

    /// Says that no result follows.
    pub(crate) fn finish_columns(&mut self) -> Result<(), Gone> {
        self.put(ResultColumns::finish)
    }

    fn columns(&mut self) -> &mut ResultColumns {
        let columns = self.columns.as_mut();
        columns.expect("a reader of columns has what writes them")
    }

    fn put(
        &mut self,
        put: impl FnOnce(&mut ResultColumns, &mut Vec<u8>) -> Result<(), ResultsError>,
    ) -> Result<(), Gone> {
        let mut out = std::mem::take(&mut self.out);
        let done = put(self.columns(), &mut out);
        self.out = out;
        done.map_err(|error| cut(&error))
    }
}

/// The rows of a result that are gone and those that came, where it has such.
///
/// # Errors
/// Why there is no result.
fn rows_of(result: &ContinuousResult) -> Result<(Option<&Rows>, Option<&Rows>), String> {
    let answer = result.answer.as_ref().map_err(Clone::clone)?;
    Ok((result.removed.as_ref(), Answer::rows(answer)))
}
