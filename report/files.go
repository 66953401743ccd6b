package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// WriteFiles writes the page as report.html into dir, which it makes if need
// be, and beside it figures/<id>.svg and figures/<id>.csv for every figure and
// tables/<id>.csv for every table. Every file appears whole or not at all; the
// page comes last, so that what it names is there. It fails as [Report.HTML]
// does, and where a file cannot be written.
func (r *Report) WriteFiles(dir string) error {
	if err := r.check(); err != nil {
		return err
	}
	for _, s := range r.Sections {
		for _, item := range s.Items {
			var err error
			switch {
			case item.Figure != nil:
				base := filepath.Join(dir, "figures", item.Figure.ID)
				if err = writeFile(base+".svg", item.Figure.SVG); err == nil {
					err = writeFile(base+".csv", item.Figure.CSV)
				}
			case item.Table != nil:
				err = writeFile(filepath.Join(dir, "tables", item.Table.ID+".csv"), item.Table.CSV)
			}
			if err != nil {
				return err
			}
		}
	}
	return writeFile(filepath.Join(dir, "report.html"), r.HTML)
}

// writeFile replaces the file at path by what write gives.
func writeFile(path string, write func(io.Writer) error) (err error) {
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", path, err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once the file has its name, as it should
	defer f.Close()           // a second time does no harm
	if _, err := f.Write(content.Bytes()); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
