//! Do the declarations agree with UCX's headers, where these are installed?

use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::process::Command;

use super::ffi;

/// Pairs of an expression in C and what it is here.
struct Facts(Vec<(String, i128)>);

/// The size of a structure, and the places of its fields.
macro_rules! structure {
    ($facts:ident, $c:literal, $rust:ty, $($field:ident = $c_field:literal),*) => {
        $facts.0.push((format!("sizeof({})", $c), size_of::<$rust>() as i128));
        $($facts.0.push((
            format!("offsetof({}, {})", $c, $c_field),
            offset_of!($rust, $field) as i128,
        ));)*
    };
}

macro_rules! numbers {
    ($facts:ident, $($c:literal = $rust:expr),* $(,)?) => {
        $($facts.0.push(($c.to_owned(), $rust as i128));)*
    };
}

fn facts() -> Facts {
    let mut facts = Facts(Vec::new());
    structure!(
        facts,
        "ucp_params_t",
        ffi::Params,
        field_mask = "field_mask",
        features = "features",
        name = "name"
    );
    structure!(
        facts,
        "ucp_worker_params_t",
        ffi::WorkerParams,
        thread_mode = "thread_mode",
        cpu_mask = "cpu_mask",
        client_id = "client_id"
    );
    structure!(
        facts,
        "ucp_ep_params_t",
        ffi::EpParams,
        address = "address",
        err_mode = "err_mode",
        err_handler = "err_handler",
        user_data = "user_data",
        flags = "flags",
        sockaddr = "sockaddr",
        name = "name"
    );
    structure!(
        facts,
        "ucp_err_handler_t",
        ffi::ErrHandler,
        callback = "cb",
        argument = "arg"
    );
    structure!(
        facts,
        "ucs_sock_addr_t",
        ffi::SockAddr,
        address = "addr",
        length = "addrlen"
    );
    structure!(
        facts,
        "ucp_request_param_t",
        ffi::RequestParam,
        op_attr_mask = "op_attr_mask",
        flags = "flags",
        callback = "cb",
        datatype = "datatype",
        memory_type = "memory_type",
        memh = "memh"
    );
    structure!(
        facts,
        "ucp_am_handler_param_t",
        ffi::AmHandlerParam,
        id = "id",
        flags = "flags",
        callback = "cb",
        argument = "arg"
    );
    structure!(
        facts,
        "ucp_am_recv_param_t",
        ffi::AmRecvParam,
        recv_attr = "recv_attr",
        reply_ep = "reply_ep"
    );
    numbers!(
        facts,
        "sizeof(ucs_status_t)" = size_of::<ffi::Status>(),
        "UCS_OK" = ffi::OK,
        "UCS_INPROGRESS" = ffi::IN_PROGRESS,
        "UCS_ERR_BUSY" = ffi::ERR_BUSY,
        "UCS_ERR_LAST" = ffi::ERR_LAST,
        "UCP_PARAM_FIELD_FEATURES" = ffi::PARAM_FEATURES,
        "UCP_FEATURE_WAKEUP" = ffi::FEATURE_WAKEUP,
        "UCP_FEATURE_AM" = ffi::FEATURE_AM,
        "UCP_WORKER_PARAM_FIELD_THREAD_MODE" = ffi::WORKER_THREAD_MODE,
        "UCS_THREAD_MODE_SERIALIZED" = ffi::THREAD_MODE_SERIALIZED,
        "UCP_EP_PARAM_FIELD_REMOTE_ADDRESS" = ffi::EP_REMOTE_ADDRESS,
        "UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE" = ffi::EP_ERR_HANDLING_MODE,
        "UCP_EP_PARAM_FIELD_ERR_HANDLER" = ffi::EP_ERR_HANDLER,
        "UCP_ERR_HANDLING_MODE_PEER" = ffi::ERR_HANDLING_PEER,
        "UCP_OP_ATTR_FIELD_FLAGS" = ffi::OP_FLAGS,
        "UCP_AM_SEND_FLAG_EAGER" = ffi::AM_EAGER,
        "(UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS | \
          UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG)" = ffi::AM_ALL_FIELDS,
        "UCP_AM_FLAG_WHOLE_MSG" = ffi::AM_WHOLE_MESSAGE,
        "UCP_AM_RECV_ATTR_FLAG_RNDV" = ffi::AM_RECV_RNDV,
    );
    facts
}

#[test]
fn declarations_agree_with_the_headers() {
    if !std::path::Path::new("/usr/include/ucp/api/ucp.h").exists() {
        println!("SKIPPED: no headers of UCX (libucx-dev)");
        return;
    }
    let facts = facts().0;
    let mut program = String::from(
        "#include <ucp/api/ucp.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n",
    );
    for (expression, _) in &facts {
        writeln!(program, "printf(\"%lld\\n\", (long long)({expression}));").unwrap();
    }
    program.push_str("return 0; }\n");
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("abi.c"), folder.path().join("abi"));
    std::fs::write(&source, program).unwrap();
    let compiled = Command::new("cc")
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let printed = Command::new(&binary).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let found: Vec<i128> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(found.len(), facts.len());
    for ((expression, here), there) in facts.into_iter().zip(found) {
        assert_eq!(here, there, "{expression}");
    }
}
