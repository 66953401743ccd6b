package report

import (
	"path/filepath"

	"parley/internal/atomicfile"
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
	p, err := r.page()
	if err != nil {
		return err
	}
	for _, s := range r.Sections {
		for _, item := range s.Items {
			switch {
			case item.Figure != nil:
				base := filepath.Join(dir, "figures", item.Figure.ID)
				if err = atomicfile.Stream(base+".svg", item.Figure.SVG); err == nil {
					err = atomicfile.Stream(base+".csv", item.Figure.CSV)
				}
			case item.Table != nil:
				err = atomicfile.Stream(filepath.Join(dir, "tables", item.Table.ID+".csv"), item.Table.CSV)
			}
			if err != nil {
				return err
			}
		}
	}
	return atomicfile.Stream(filepath.Join(dir, "report.html"), p.write)
}
