package graffl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

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
