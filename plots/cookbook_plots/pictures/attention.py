# SPDX-License-Identifier: MIT
"""Attention's schedule: keys against queries under a causal mask, the queue of query tiles, and a divided last wave."""
from ..results import ResultError
from .lines import HEIGHT, label, runs
from .svg import COLOURS, INNER, MARGIN, Picture, plural

SEEN, MASKED = COLOURS[4], COLOURS[1]
WHOLE, SECOND = COLOURS[0], [COLOURS[1], COLOURS[2]]
SMS = 8  # of the small queue
LABEL = 40


def draw(document, words, _root):
    """{"queue": ..., "last-wave": ...}, or the one that `words` name."""
    found = {"queue": queue, "last-wave": last_wave}
    return {name: of(document) for name, of in found.items() if not words or name == "-".join(words)}


def queue(document):
    rows, cols = document["tile"]
    tiles = check_queue(document)
    heads = len({head for _, head, _ in tiles})
    ends = {name: max(end for *_, end in serve([tile[2] for tile in order]))
            for name, order in (("longest", tiles), ("shortest", tiles[::-1]))}
    picture = Picture("Keys against queries under a causal mask",
                      f"Longest first, {SMS} SMs end after {ends['longest']} key tiles; shortest first, after {ends['shortest']}. Query "
                      f"tile i visits key tiles 0 to i. {document['tokens']:,} tokens in tiles of {rows} queries and {cols} keys; a "
                      f"counter assigns the tiles of {heads} heads.")
    picture.heading(picture.title)
    picture.paragraph(f"{document['tokens']:,} tokens, tiles of {rows} queries and {cols} keys. Columns: key tiles.", style="muted")
    picture.y += 4
    visited = {query: keys for query, _, keys in tiles}
    width = 22
    for query in sorted(visited):
        picture.text(MARGIN, picture.y + 10, f"queries {query}", 10.5)
        for key in range(len(visited)):
            x = MARGIN + 70 + key * width
            fill = None if key >= visited[query] else MASKED if (key + 1) * cols > query * rows + 1 else SEEN
            picture.rect(x, picture.y, width - 1, HEIGHT, "" if fill else "off", fill)
        picture.text(MARGIN + 76 + len(visited) * width, picture.y + 10, plural(visited[query], "key tile"), 10.5)
        picture.y += HEIGHT + 1
    picture.legend([(SEEN, "every query sees all keys"), (MASKED, "needs the mask"), ("off", "not visited")])
    picture.paragraph(f"The queue of {heads} heads on {SMS} SMs, the longest first. A box is a query tile, as long as it has key "
                      "tiles.")
    picture.y += 4
    scale = (INNER - LABEL) / max(ends.values())
    served = serve([keys for *_, keys in tiles])
    for sm in range(SMS):
        picture.text(MARGIN, picture.y + 10, f"SM {sm}", 10.5)
        for (query, _, _), (on, begin, end) in zip(tiles, served):
            if on == sm:
                fill = COLOURS[query % len(COLOURS)]
                picture.rect(MARGIN + LABEL + begin * scale, picture.y, (end - begin) * scale, HEIGHT, fill=fill)
                picture.rect(MARGIN + LABEL + begin * scale, picture.y, (end - begin) * scale, HEIGHT, "cell")
                label(picture, MARGIN + LABEL + begin * scale, picture.y, (end - begin) * scale, str(query), fill)
        picture.y += HEIGHT + 1
    picture.paragraph(f"The last SM ends after {ends['longest']} key tiles. With the shortest first, it would end after "
                      f"{ends['shortest']}.")
    return picture


def serve(lengths):
    """(SM, begin, end) of each tile of a queue: the SM that is free first takes the next one."""
    free, found = [0] * SMS, []
    for length in lengths:
        sm = min(range(SMS), key=lambda i: free[i])
        found.append((sm, free[sm], free[sm] + length))
        free[sm] += length
    return found


def check_queue(document):
    """[(query tile, head, key tiles)] in order. ResultError unless each tile is there once, visits the keys that its last query
    sees and no others, and no tile is longer than the one before it."""
    rows, cols = document["tile"]
    tiles = [(tile["query_tile"], tile["head"], tile["key_tiles"]) for tile in document["queue"]]
    for query, head, keys in tiles:
        expected = -(-min((query + 1) * rows, document["tokens"]) // cols)
        if keys != expected:
            raise ResultError(f"query tile {query} of head {head} visits {keys} key tiles; its last query sees keys of {expected}")
    count, heads = -(-document["tokens"] // rows), 1 + max(head for _, head, _ in tiles)
    if sorted((query, head) for query, head, _ in tiles) != [(query, head) for query in range(count) for head in range(heads)]:
        raise ResultError(f"the queue does not have each of {count} query tiles of {heads} heads once")
    if any(after[2] > before[2] for before, after in zip(tiles, tiles[1:])):
        raise ResultError("the queue does not have the longest tiles first")
    return tiles


def last_wave(document):
    blocks, keys, cost = check_division(document), document["key_tiles"], document["chunk_cost"]
    left = document["tiles"] - document["whole_tiles"]
    longest = max(sum(count + cost for _, _, count in chunks) for chunks in blocks)
    picture = Picture("A last wave, whole and divided by keys",
                      f"The last {left} query tiles end after {2 * keys} key tiles; divided, after {keys + longest}. "
                      f"{document['whole_tiles']} of {document['tiles']} fill the first wave of {len(blocks)} SMs.")
    picture.heading(picture.title)
    picture.paragraph(f"{document['tiles']} query tiles of {keys} key tiles on {len(blocks)} SMs, from left to right; time goes down. "
                      f"{left} tiles are left for a second wave.", style="muted")
    width, unit = INNER / len(blocks), 2.0
    picture.y += 6
    picture.text(MARGIN, picture.y + 10, f"whole: {2 * keys} key tiles", 11.5, font="bold")
    picture.y += 16
    picture.rect(MARGIN, picture.y, INNER, 2 * keys * unit, "off")
    picture.rect(MARGIN, picture.y, INNER, keys * unit, fill=WHOLE)
    for tile in range(left):
        picture.rect(MARGIN + tile * width, picture.y + keys * unit, width, keys * unit, fill=SECOND[tile % 2])
    picture.y += 2 * keys * unit + 6
    picture.text(MARGIN, picture.y + 10, f"divided: {keys + longest} key tiles", 11.5, font="bold")
    picture.y += 16
    picture.rect(MARGIN, picture.y, INNER, (keys + longest) * unit, "off")
    for block, chunks in enumerate(blocks):
        x, at = MARGIN + block * width, 0
        for tile, _, count in chunks:
            picture.rect(x, picture.y + at * unit, width, count * unit, fill=SECOND[tile % 2])
            picture.rect(x, picture.y + (at + count) * unit, width, cost * unit, "waste")
            at += count + cost
    for at, first, count in runs([sum(keys_of + cost for *_, keys_of in chunks) for chunks in blocks]):
        picture.rect(MARGIN + first * width, picture.y + at * unit, count * width, keys * unit, fill=WHOLE)
    picture.y += (keys + longest) * unit + 2
    picture.legend([(WHOLE, "whole tiles"), (SECOND[0], "even tiles that are left"), (SECOND[1], "odd ones"),
                    ("waste", f"cost of a chunk, {cost} key tiles")])
    return picture


def check_division(document):
    """[[(tile, first key tile, key tiles)]] of each SM. ResultError unless the chunks of each tile that is left have each of its
    key tiles once."""
    blocks = [list(zip(*[iter(block["chunks"])] * 3)) for block in document["blocks"]]
    visited = {tile: [] for tile in range(document["whole_tiles"], document["tiles"])}
    if document["whole_tiles"] % len(blocks) or len(visited) >= len(blocks):
        raise ResultError(f"{document['whole_tiles']} whole tiles are no whole waves of {len(blocks)} SMs")
    for tile, first, count in (chunk for chunks in blocks for chunk in chunks):
        if tile not in visited:
            raise ResultError(f"tile {tile} is divided, and it is a whole one")
        visited[tile] += range(first, first + count)
    for tile, keys in visited.items():
        if sorted(keys) != list(range(document["key_tiles"])):
            raise ResultError(f"the chunks of tile {tile} have {len(keys)} of its {document['key_tiles']} key tiles, or one twice")
    return blocks
