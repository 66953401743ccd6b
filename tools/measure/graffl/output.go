package graffl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"parley/figure"
)

// draw writes a figure as SVG and its numbers as CSV, into a folder that it makes.
func draw(dir string, f figure.Figure) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, kind := range []struct {
		ending string
		write  func(*bytes.Buffer) error
	}{{".svg", func(b *bytes.Buffer) error { return f.SVG(b) }}, {".csv", func(b *bytes.Buffer) error { return f.CSV(b) }}} {
		var b bytes.Buffer
		if err := kind.write(&b); err != nil {
			return fmt.Errorf("drawing %s: %w", f.ID, err)
		}
		if err := os.WriteFile(filepath.Join(dir, f.ID+kind.ending), b.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// plusLists reads lists of positive numbers with + between, which have commas between them.
func plusLists(list string) (out [][]int, err error) {
	for part := range strings.SplitSeq(list, ",") {
		var one []int
		for s := range strings.SplitSeq(part, "+") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("%q is no positive number", s)
			}
			one = append(one, n)
		}
		out = append(out, one)
	}
	return out, nil
}
