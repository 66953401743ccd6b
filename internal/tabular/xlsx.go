package tabular

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/xuri/excelize/v2"
)

// maxWorkbook is how many bytes a workbook may take in memory when it is unpacked.
const maxWorkbook = 512 << 20

// XLSX returns the one sheet of a workbook that holds cells, as CSV. Numbers are those
// that are stored, whatever their format shows, and formulas the values that were saved
// with them. It is an error if more than one sheet holds cells, because nobody said which
// one is meant. The source is read at once and can be closed.
func XLSX(src io.Reader) (_ io.ReadCloser, err error) {
	defer contain(&err)
	book, err := excelize.OpenReader(src, excelize.Options{RawCellValue: true, UnzipSizeLimit: maxWorkbook, UnzipXMLSizeLimit: maxWorkbook})
	if err != nil {
		if errors.Is(err, excelize.ErrWorkbookPassword) || errors.Is(err, excelize.ErrWorkbookFileFormat) {
			return nil, errors.New("it is protected by a password, or not a workbook of Excel")
		}
		return nil, err
	}
	if err := wellFormed(book); err != nil {
		return nil, errors.Join(err, book.Close())
	}
	var filled []string
	for _, sheet := range book.GetSheetList() {
		if has, err := holdsCells(book, sheet); err != nil {
			return nil, errors.Join(err, book.Close())
		} else if has {
			filled = append(filled, sheet)
		}
	}
	if len(filled) > 1 {
		return nil, errors.Join(fmt.Errorf("%d sheets hold cells (%s), and a table is one", len(filled), strings.Join(filled, ", ")), book.Close())
	}
	if len(filled) == 0 {
		return &text{row: func([]byte) ([]byte, error) { return nil, io.EOF }, close: book.Close}, nil
	}
	rows, err := book.Rows(filled[0])
	if err != nil {
		return nil, errors.Join(err, book.Close())
	}
	width := 0 // of the header: cells at the end of a row that are empty are not stored
	return &text{
		row: func(b []byte) ([]byte, error) {
			if !rows.Next() {
				if err := rows.Error(); err != nil {
					return b, err
				}
				return b, io.EOF
			}
			cells, err := rows.Columns()
			if err != nil {
				return b, err
			}
			for len(cells) > width && cells[len(cells)-1] == "" {
				cells = cells[:len(cells)-1]
			}
			if len(cells) == 0 {
				return append(b, '\n'), nil
			}
			if width == 0 {
				width = len(cells)
			}
			row := make([][]byte, max(width, len(cells)))
			for i, c := range cells {
				row[i] = []byte(c)
			}
			return appendRow(b, row), nil
		},
		close: func() error { return errors.Join(rows.Close(), book.Close()) },
	}, nil
}

// wellFormed reads the sheets once as XML: at what is none, excelize takes the rows to end.
func wellFormed(book *excelize.File) (err error) {
	book.Pkg.Range(func(name, part any) bool {
		if data, ok := part.([]byte); ok && strings.HasPrefix(name.(string), "xl/worksheets/sheet") {
			for d := xml.NewDecoder(bytes.NewReader(data)); err == nil; {
				_, err = d.Token()
			}
			if err == io.EOF {
				err = nil
			}
		}
		return err == nil
	})
	return err
}

func holdsCells(book *excelize.File, sheet string) (bool, error) {
	rows, err := book.Rows(sheet)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		cells, err := rows.Columns()
		if err != nil {
			return false, err
		}
		for _, c := range cells {
			if c != "" {
				return true, nil
			}
		}
	}
	return false, rows.Error()
}
