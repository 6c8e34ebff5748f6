"""The lines of a pack with the ids that they leave out, computed by the rules of docs/formats/rawpack.md: by another
implementation than ours."""

import base64
import json

import blake3


def half(content: bytes) -> str:
    return blake3.blake3(content).hexdigest()[:32]


def request_key(line: dict) -> str:
    parts = [line["kind"], line["method"], line["url"]]
    content = b"request/1" + b"".join(len(part.encode()).to_bytes(8, "little") + part.encode() for part in parts)
    if "request_body" in line:
        body = line["request_body"]
        body = body.encode() if isinstance(body, str) else base64.b64decode(body["base64"])
        content += len(body).to_bytes(8, "little") + body
    return half(content)


def capture_id(head: dict, line: dict) -> str:
    parts = ["capture/1", head["source"], head["date"], head["run"], line["request_key"], line["attempt"], line["hop"]]
    return half("\n".join(map(str, parts)).encode())


def whole(head: dict, text: str) -> list[dict]:
    """The lines of a member `m/<frame>.jsonl`; `head` is what `PACK.json` says."""
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        if "request_key" not in line:
            line["request_key"] = request_key(line)
        if "capture_id" not in line:
            line["capture_id"] = capture_id(head, line)
    return lines
