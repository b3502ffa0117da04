"""`/images`: photographs of the index, by id and by nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, Response

from crossgaze.search.entries import Entry
from crossgaze.search.filters import LATEST
from crossgaze.search.planning import digest_of
from crossgaze.search.results import Region as KeptRegion
from crossgaze.vision.photos import PhotoError, format_of
from crossgaze.web.library import Library
from crossgaze.web.problems import RequestError
from crossgaze.web.routes.parameters import ERRORS, FARTHEST, Filters, Identity, Limit, Offset
from crossgaze.web.schemas import PhotographDetail, PhotographPage, Region, Sentence
from crossgaze.web.service import Service
from crossgaze.web.thumbnails import Side

KINDS = {name: f"image/{name.lower()}" for name in ("JPEG", "PNG", "WebP", "GIF", "BMP", "TIFF")}
HEAD = 32  # bytes by which a format is known
CACHED = "private, max-age=3600"


def router(service: Service) -> APIRouter:
    """Return the routes."""
    made = APIRouter(tags=["photographs"], responses=ERRORS)
    library = service.library

    @made.get("/images")
    async def images(where: Filters, offset: Offset = 0, limit: Limit = 40) -> PhotographPage:
        """Return photographs, those taken last first."""

        def page() -> PhotographPage:
            uids = library.newest(where)
            cards = library.cards(uids[offset : offset + limit].tolist())
            end = offset + limit
            return PhotographPage(
                photographs=tuple(cards.values()),
                offset=offset,
                next_offset=end if end < min(len(uids), FARTHEST + 1) else None,
                found=len(uids),
                total=library.photographs,
            )

        return await service.models.run(page)

    @made.get("/images/{uid}")
    async def image(uid: Identity) -> PhotographDetail:
        """Return what the index knows of a photograph, its regions among it."""
        return await service.models.run(_detail, library, uid)

    @made.get("/images/{uid}/sentences")
    async def sentences(uid: Identity) -> tuple[Sentence, ...]:
        """Return the best sentences of the index for a photograph."""
        return await service.models.run(library.sentences_of, uid)

    @made.get("/images/{uid}/thumbnail", response_class=Response, responses=_picture("image/jpeg"))
    async def thumbnail(
        request: Request,
        uid: Identity,
        side: Annotated[Side, Query(description="the longer side's pixels")] = Side.SMALL,
        v: Annotated[
            str, Query(max_length=64, description="the version, for the cache", examples=["0f3c"])
        ] = "",
    ) -> Response:
        """Return a photograph as a small upright JPEG."""
        entry = await service.entry(uid)
        tag = f'"{entry.digest[:16]}-{side:d}"'
        headers = {"ETag": tag, "Cache-Control": CACHED}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        data = service.thumbnails.find(entry, side)
        if data is None:
            data = await service.pictures.run(service.thumbnails.make, entry, side)
        return Response(data, media_type="image/jpeg", headers=headers)

    @made.get("/images/{uid}/file", response_class=FileResponse, responses=_picture("image/*"))
    async def file(uid: Identity) -> FileResponse:
        """Return a photograph's own file."""
        entry = await service.entry(uid)
        kind = await service.pictures.run(_kind, entry)
        name = quote(Path(entry.key).name, safe="")
        headers = {
            "Cache-Control": CACHED,
            "Content-Disposition": f"inline; filename*=UTF-8''{name}",
        }
        return FileResponse(entry.key, media_type=KINDS[kind], headers=headers)

    return made


def _picture(kind: str) -> dict[int | str, dict[str, Any]]:
    schema = {"schema": {"type": "string", "format": "binary"}}
    return {200: {"content": {kind: schema}, "description": "The picture"}}


def _kind(entry: Entry) -> str:
    """Return the format of a file that still is the indexed photograph; nothing else is sent."""
    path = Path(entry.key)
    try:
        if not path.is_file():
            raise RequestError(404, "this photograph's file is no longer there")
        state = path.stat()
        same = state.st_size == entry.bytes
        if same and state.st_mtime_ns != entry.modified:  # touched or copied: its content decides
            same = digest_of(path.read_bytes()) == entry.digest
        if not same:
            raise RequestError(
                404, "this photograph's file has changed since; index its folder again"
            )
        with path.open("rb") as file:
            return format_of(path.name, file.read(HEAD))[0]
    except (PhotoError, OSError):
        raise RequestError(404, "this photograph's file can no longer be read") from None


def _detail(library: Library, uid: int) -> PhotographDetail:
    entry = library.entry(uid)
    card = library.cards([uid])[uid]
    taken = datetime.fromtimestamp(max(min(entry.taken, LATEST), -LATEST // 5), UTC)
    return PhotographDetail(
        **dict(card),
        path=entry.key,
        taken=taken.isoformat().replace("+00:00", "Z"),
        bytes=entry.bytes,
        regions=shares(library.regions(uid), entry),
    )


def shares(regions: tuple[KeptRegion, ...], entry: Entry) -> tuple[Region, ...]:
    """Return regions with boxes as shares of width and height."""
    wide, high = max(entry.width, 1), max(entry.height, 1)
    return tuple(
        Region(
            box=tuple(
                round(x / side, 5) for x, side in zip(one.box, (wide, high) * 2, strict=True)
            ),  # type: ignore[arg-type]
            noun=one.noun,
            attribute=one.attribute,
            confidence=round(one.confidence, 4),
        )
        for one in regions
    )
