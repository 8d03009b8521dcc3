"""Uses the client that openapi-python-client makes of the description, on a real server.

    use.py FOLDER_OF_THE_CLIENT ADDRESS TOKEN
"""

import importlib
import io
import pkgutil
import sys
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

sys.path.insert(0, sys.argv[1])

import landfall_client
from landfall_client import AuthenticatedClient
from landfall_client.api.files import download_file, list_files, show_file
from landfall_client.api.uploads import confirm_file, register_file, send_bytes
from landfall_client.models import ConfirmRequest, FileStatus, NewFile, Refusal, RefusalCode
from landfall_client.types import File

TEXT = b"Ships that pass in the night, and speak each other in passing."


def import_all():
    modules = [one.name for one in pkgutil.walk_packages(landfall_client.__path__, "landfall_client.")]
    for name in modules:
        importlib.import_module(name)
    return len(modules)


def main(address, token):
    client = AuthenticatedClient(base_url=address, token=token)
    assert list_files.sync(client=client).files == []
    ticket = register_file.sync(client=client, body=NewFile(file_name="ships.txt", file_size=len(TEXT)))
    query = {name: values[0] for name, values in parse_qs(urlsplit(ticket.upload_url).query).items()}
    sent = send_bytes.sync(
        ticket.file_id,
        client=client,
        body=File(payload=io.BytesIO(TEXT)),
        size=int(query["size"]),
        expires=int(query["expires"]),
        signature=query["signature"],
    )
    assert sent.size == len(TEXT), sent
    confirm_file.sync(ticket.file_id, client=client, body=ConfirmRequest(size=len(TEXT)))
    file = show_file.sync(ticket.file_id, client=client)
    assert file.file_name == "ships.txt" and isinstance(file.status, FileStatus), file
    assert [one.file_id for one in list_files.sync(client=client).files] == [ticket.file_id]
    loaded = download_file.sync(ticket.file_id, client=client)
    assert loaded.payload.read() == TEXT
    refused = show_file.sync(UUID(int=0), client=client)
    assert isinstance(refused, Refusal) and refused.error.code == RefusalCode.FILE_NOT_FOUND, refused


print(f"check-description: imported {import_all()} generated modules")
main(*sys.argv[2:])
