# SPDX-License-Identifier: MIT
"""Traces of ./run N --timeline: what is read, which tracks become rows, and what the figure says."""
import json
import unittest

from cookbook_plots import timeline, traces

from .fixtures import Folder, said


def span(tid, name, category, begin, end):
    return [{"name": name, "cat": category, "ph": "B", "ts": begin, "pid": 0, "tid": tid},
            {"ph": "E", "ts": end, "pid": 0, "tid": tid}]


def trace(clock="order"):
    names = ["copies by TMA", "producer (warp 0)", "consumer 0 (warp 4)",
             "consumer 0 (warp 4): multiplies in flight", "consumer 0 (warp 4): multiplies in flight, 2",
             "consumer 0 (warp 5)", "consumer 1 (warp 8)"]
    events = [{"name": "thread_name", "ph": "M", "pid": 0, "tid": tid, "args": {"name": name}}
              for tid, name in enumerate(names)]
    events += span(0, "copy [0]", "copy", 1, 6) + span(1, "wait empty[0]", "wait", 0, 1)
    events += span(2, "wait full[0]", "wait", 2, 6) + span(3, "multiply [0]", "multiply", 7, 12)
    events += span(4, "multiply [1]", "multiply", 9, 14) + span(6, "store", "store", 15, 16)
    about = {"program": "chapter-6", "level": "one_in_flight", "size": "256x256x320", "clock": clock, "device": "SIMT"}
    return {"traceEvents": events, "otherData": about}


class TimelineTest(Folder):
    def write(self, data):
        return self.file("trace.json", data)

    def run_main(self, *arguments):
        return said(timeline.main, [str(argument) for argument in arguments])

    def test_a_row_per_role(self):
        tracks, about = timeline.read(self.write(trace()))
        rows = dict(timeline.rows(tracks))
        self.assertEqual(list(rows), ["copies by TMA", "producer", "consumer 0", "consumer 0: multiplies in flight",
                                      "consumer 1"])
        self.assertEqual([name for name, *_ in rows["consumer 0: multiplies in flight"]], ["multiply [0]", "multiply [1]"])
        self.assertEqual(about["level"], "one_in_flight")

    def test_without_roles_the_first_warp(self):
        tracks = {(0, f"warp {warp}{what}"): [] for warp in range(8) for what in ("", ": copies in flight")}
        self.assertEqual([label for label, _ in timeline.rows(tracks)], ["warp 0", "warp 0: copies in flight"])

    def test_times_say_what_the_marks_cost(self):
        about = {"level": "static", "device": "NVIDIA H200"}
        self.assertEqual(timeline.times_of([about]), "times on NVIDIA H200")
        self.assertEqual(timeline.times_of([{**about, "overhead": 2.49}, {**about, "level": "ping_pong", "overhead": 2.8}]),
                         "times on NVIDIA H200 · the marks cost time, so everything takes longer: static 2.5x, "
                         "ping_pong 2.8x")

    def test_the_figure_of_an_order_says_so(self):
        for clock, expected in (("order", True), ("time", False)):
            status, out, _ = self.run_main(self.write(trace(clock)), "--out", self.folder / "figure")
            self.assertEqual(status, 0)
            self.assertEqual(len(out.splitlines()), 2)
            for theme in ("light", "dark"):
                text = (self.folder / f"figure-{theme}.svg").read_text()
                self.assertEqual("no times" in text, expected)
                self.assertIn("consumer 1", text)
                self.assertIn(">multiply</text>", text)
                self.assertNotIn(">softmax</text>", text)  # the legend has what occurs

    def test_what_a_picture_keeps(self):
        data = self.folder / "data.json"
        for clock, kind in (("time", "timeline"), ("order", "order")):
            self.assertEqual(said(traces.main, [str(self.write(trace(clock))), "--data", str(data)])[0], 0)
            document = json.loads(data.read_text())
            level = document["levels"][0]
            self.assertEqual((document["kind"], level["size"]), (kind, [256, 256, 320]))
            if clock == "time":
                self.assertEqual(level["tracks"], {"copies by TMA": [["copy", 1, 6]], "consumer 0": [["wait", 2, 6]],
                                                   "consumer 0: multiplies in flight": [["multiply", 7, 12], ["multiply", 9, 14]],
                                                   "consumer 1": [["store", 15, 16]]})
            else:
                self.assertEqual(level["tracks"]["copies by TMA"], [["copy [0]", 1, 6]])
                self.assertEqual(level["tracks"]["consumer 0 (warp 4)"], [["wait full[0]", 2, 6]])
        mixed = [str(self.file(f"{clock}.json", trace(clock))) for clock in ("time", "order")]
        status, _, err = said(traces.main, [*mixed, "--data", str(data)])
        self.assertEqual((status, err.count("\n")), (2, 1))

    def test_spans_must_nest(self):
        for lost, message in ((-1, "a begin without an end"), (-2, "an end without a begin")):
            data = trace()
            del data["traceEvents"][lost]
            with self.assertRaisesRegex(timeline.TraceError, message):
                timeline.read(self.write(data))

    def test_another_file_is_one_line_and_status_2(self):
        for text in ("{}", "no json", json.dumps({"traceEvents": [], "otherData": {}})):
            status, _, err = self.run_main(self.write(text), "--out", self.folder / "figure")
            self.assertEqual(status, 2)
            self.assertEqual(err.count("\n"), 1)
            self.assertIn("not a trace", err)


if __name__ == "__main__":
    unittest.main()
