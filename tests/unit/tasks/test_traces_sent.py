"""A file of spans that OpenTelemetry's own SDK and exporter sent is read. Texts are made up."""

import json
import threading
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tasks.formats import FORMATS
from tasks.formats.reading import iter_record_lines
from tests.support.traces import ANSWER, CALL, FIXTURES, QUESTION, RESULT, TOOL, chat

json_format = pytest.importorskip("google.protobuf.json_format")
export = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

INSTRUCTIONS = json.dumps([{"type": "text", "content": "Be brief."}])


@pytest.fixture
def collector(tmp_path):
    """The address of a receiver that writes what it gets as the collector's `file` exporter does.

    One batch a line, as OTLP JSON: ids in hexadecimal, not in base64 as protobuf's JSON has them.
    """
    path = tmp_path / "spans.jsonl"

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["Content-Length"])
            batch = trace_service.ExportTraceServiceRequest.FromString(self.rfile.read(length))
            line = json_format.MessageToDict(batch, use_integers_for_enums=True)
            for resource in line["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        for key in {"traceId", "spanId", "parentSpanId"} & span.keys():
                            span[key] = b64decode(span[key]).hex()
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/traces", path
        server.shutdown()


def send_spans(address):
    """Work as an agent that calls a tool, and return the ids of its trace and of its spans."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider(shutdown_on_exit=False)
    exporter = export.OTLPSpanExporter(
        endpoint=address, compression=export.Compression.NoCompression
    )
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("agent")
    first = chat(QUESTION, [CALL]) | {"gen_ai.system_instructions": INSTRUCTIONS}
    spans = []
    whole = chat(QUESTION, [ANSWER], "invoke_agent")
    with tracer.start_as_current_span("invoke_agent", attributes=whole) as agent:
        for values in (first, TOOL, chat([*QUESTION, CALL, RESULT], [ANSWER])):
            with tracer.start_as_current_span("step", attributes=values) as span:
                spans.append(f"{span.get_span_context().span_id:016x}")
    provider.shutdown()
    context = agent.get_span_context()
    return f"{context.trace_id:032x}", [f"{context.span_id:016x}", *spans]


def read_row(path):
    (line,) = iter_record_lines(path, FORMATS["opentelemetry"])
    assert not line.error, line.error
    return line.row


def test_what_the_exporter_sends_is_the_conversation_of_the_fixture(collector):
    address, path = collector
    trace, spans = send_spans(address)
    # Each span is sent by itself as it ends, the agent's own as the last.
    assert len(path.read_text().splitlines()) == 4
    row = read_row(path)
    assert row["context"] == read_row(FIXTURES / "opentelemetry.jsonl")["context"]
    assert row["uid"] == trace
    assert {*row["metadata"]["spans"]} == {*spans}
    assert row["metadata"]["models"] == ["model-1"]
