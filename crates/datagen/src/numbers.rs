//! How does a number become text, faster than by formatting? Numbers are most of what varies in generated data.

/// Appends a number in decimal.
#[inline]
pub(crate) fn push_number(out: &mut String, mut n: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[at..]).expect("decimal digits are ASCII"));
}

/// Appends a number in hexadecimal, in small letters and without zeros before it.
#[inline]
pub(crate) fn push_hexadecimal(out: &mut String, n: u32) {
    let digits = (u32::BITS - n.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        let digit = (n >> (4 * place) & 0xf) as usize;
        out.push(char::from(b"0123456789abcdef"[digit]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_they_are_formatted() {
        let numbers =
            (0..64).flat_map(|shift| [(1_u64 << shift) - 1, 1 << shift, u64::MAX >> shift]);
        for number in numbers {
            let (mut decimal, mut hexadecimal) = (String::new(), String::new());
            push_number(&mut decimal, number);
            assert_eq!(decimal, number.to_string());
            push_hexadecimal(&mut hexadecimal, number as u32);
            assert_eq!(hexadecimal, format!("{:x}", number as u32));
        }
    }
}
