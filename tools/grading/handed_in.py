# SPDX-License-Identifier: MIT
"""What a class handed in: every entry of the folder is a student's, and is read or says why not."""
import hashlib
import os
import re
import unicodedata
import zipfile
import zlib

from assignment import BadSubmission

MOST_BYTES = 256 << 10  # of one file
MOST_FILES = 200  # in a folder or a zip
MOST_ZIP_BYTES = 4 << 20
MOST_NAME_BYTES = 200  # 255 with endings: of a file name
ENDINGS = (".cuh", ".cu", ".hpp", ".h", ".cpp", ".txt")


def submissions_in(folder):
    """{name: path}: one per entry that is not hidden. Two of one stem keep their endings."""
    if folder.is_file():
        return {shown(folder.stem): folder}
    paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    stems = [path.stem if path.is_file() else path.name for path in paths]
    found = {}
    for path, stem in zip(paths, stems):
        name = shown(stem if stems.count(stem) == 1 else path.name)
        while name in found:
            name += "'"
        found[name] = path
    return found


def shown(name):
    """A name as text that can be printed: a file's name may be any bytes."""
    text = unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "replace"))
    return "".join(c if c.isprintable() else "?" for c in text)[:100]


def file_name(name):
    """What the files of a student's results are called: the name, or what is left of it with a number."""
    plain = re.sub(r"[^\w.,@+= -]", "_", name).encode()[:MOST_NAME_BYTES].decode(errors="ignore")
    changed = plain != name or plain.startswith((".", "-")) or not plain.strip()  # a shell takes -rf for an option
    return f"{plain.lstrip('.-')}-{hashlib.sha256(name.encode()).hexdigest()[:6]}" if changed else plain


def as_text(raw):
    if len(raw) > MOST_BYTES:
        raise BadSubmission(f"the file has more than {MOST_BYTES >> 10} KiB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadSubmission("the file is not UTF-8 text; save it as UTF-8") from None


def read_file(path):
    with open(path, "rb") as file:
        return as_text(file.read(MOST_BYTES + 1))


def files_of_folder(path):
    """{place in the folder: function that reads it}; no link is followed."""
    found = {}
    for count, (place, folders, names) in enumerate(os.walk(path)):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(place, name)
            if os.path.isfile(file) and not os.path.islink(file):
                found[os.path.relpath(file, path)] = lambda file=file: read_file(file)
            if max(count, len(found)) > MOST_FILES:
                raise BadSubmission(f"the folder has more than {MOST_FILES} files")
    return found


def files_of_zip(path):
    """The same of a zip. Nothing is unpacked to a disk, and no entry further than it may be long."""
    def read(archive, entry):
        with zipfile.ZipFile(archive) as file, file.open(entry) as opened:
            return as_text(opened.read(MOST_BYTES + 1))
    if path.stat().st_size > MOST_ZIP_BYTES:
        raise BadSubmission(f"the zip has more than {MOST_ZIP_BYTES >> 20} MiB; hand in the source files only")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir() and not hidden(entry.filename)]
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError):
        raise BadSubmission("the zip cannot be read; hand in the file itself") from None
    if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries):
        raise BadSubmission("the zip is packed in a way that is not read; hand in the file itself")
    if len(entries) > MOST_FILES:
        raise BadSubmission(f"the zip has more than {MOST_FILES} files")
    return {entry.filename: lambda entry=entry: read(path, entry) for entry in entries}


def hidden(place):
    """What a Mac puts beside each file of a zip."""
    return any(part.startswith(".") or part == "__MACOSX" for part in place.split("/"))


def read_submission(path, assignment):
    """(the text of what was submitted, {name: text} of the student's own headers: a whole file may have some)"""
    wanted = assignment.file.name
    if path.is_symlink():
        raise BadSubmission(f"is a link; hand in {wanted} itself")
    if not path.is_file() and not path.is_dir():
        raise BadSubmission(f"is no file; hand in {wanted}")
    if path.is_file() and path.suffix in ENDINGS:
        return read_file(path), {}
    if path.is_dir():
        files = files_of_folder(path)
    elif path.suffix.lower() == ".zip" and path.is_file():
        files = files_of_zip(path)
    else:
        raise BadSubmission(f"a {path.suffix or 'file without an ending'} is not read; hand in {wanted}, a folder with it, or a "
                            "zip of that")
    texts = {place: read for place, read in files.items() if place.endswith(ENDINGS)}
    named = [place for place in texts if os.path.basename(place) == wanted]
    if len(named) != 1 and len(texts) != 1:
        there = ", but " + ", ".join(shown(place) for place in sorted(files)[:5]) if files else " and nothing else that is read"
        raise BadSubmission(f"has no {wanted}{there}" if not named else f"has {len(named)} files {wanted}; hand in one")
    main_file = (named or list(texts))[0]
    try:
        own = {}
        if assignment.regions is None:
            own = {os.path.basename(place): read() for place, read in texts.items()
                   if os.path.dirname(place) == os.path.dirname(main_file) and place != main_file and
                   os.path.basename(place) not in assignment.files}
        return texts[main_file](), own
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, ValueError, EOFError):
        raise BadSubmission("the zip cannot be read; hand in the file itself") from None
