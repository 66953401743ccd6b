package tabular

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Parquet returns the rows of a Parquet file as CSV. A column named id, which other
// programs write last, comes first. Every column must be a flat one of texts, numbers,
// truth values, dates or times. The source must stay open until the text is closed.
func Parquet(src io.ReaderAt, size int64) (_ io.ReadCloser, err error) {
	defer contain(&err)
	file, err := parquet.OpenFile(src, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	columns := file.Root().Columns()
	if len(columns) == 0 {
		return nil, errors.New("it has no columns")
	}
	print, names := make([]func([]byte, parquet.Value) []byte, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		if print[i], names[i] = printer(c), c.Name(); print[i] == nil {
			return nil, fmt.Errorf("column %s is of a type that has no place in a table (%s)", c.Name(), c.Type())
		}
	}
	r := &parquetRows{groups: file.RowGroups(), batch: make([]parquet.Row, 64)}
	return inOrder(names, func(cells [][]byte) error {
		row, err := r.next()
		if err != nil {
			return err
		}
		if len(row) != len(cells) {
			return fmt.Errorf("a row has %d cells, and there are %d columns", len(row), len(cells))
		}
		for _, v := range row {
			i := v.Column()
			if cells[i] = cells[i][:0]; !v.IsNull() {
				cells[i] = print[i](cells[i], v)
			}
		}
		return nil
	}, r.close), nil
}

// printer writes values of a column as cells; nil if the column is not of a kind that
// a cell can hold.
func printer(c *parquet.Column) func([]byte, parquet.Value) []byte {
	if !c.Leaf() || c.Repeated() {
		return nil
	}
	var logical format.LogicalTypeValue // nil if a value is what it is stored as
	if l := c.Type().LogicalType(); l != nil {
		logical = l.Value
	}
	switch c.Type().Kind() {
	case parquet.Boolean:
		return func(b []byte, v parquet.Value) []byte { return appendBool(b, v.Boolean()) }
	case parquet.Float:
		return func(b []byte, v parquet.Value) []byte { return AppendFloat(b, float64(v.Float()), 32) }
	case parquet.Double:
		return func(b []byte, v parquet.Value) []byte { return AppendFloat(b, v.Double(), 64) }
	case parquet.ByteArray, parquet.FixedLenByteArray:
		switch logical := logical.(type) {
		case *format.DecimalType:
			return func(b []byte, v parquet.Value) []byte {
				return appendDecimal(b, twosComplement(v.ByteArray()), logical.Scale)
			}
		case nil, *format.StringType, *format.EnumType:
			if c.Type().Kind() == parquet.ByteArray {
				return func(b []byte, v parquet.Value) []byte { return append(b, v.ByteArray()...) }
			}
		}
	case parquet.Int96: // a moment, as Spark and Impala wrote it
		return func(b []byte, v parquet.Value) []byte {
			i := v.Int96()
			const epoch = 2440588 // the Julian day of 1970-01-01
			return appendTime(b, time.Unix(86400*(int64(i[2])-epoch), int64(uint64(i[1])<<32|uint64(i[0]))).UTC())
		}
	case parquet.Int32, parquet.Int64:
		return integers(c.Type().Kind(), logical)
	}
	return nil
}

// integers writes numbers, dates and times that are stored as integers.
func integers(kind parquet.Kind, logical format.LogicalTypeValue) func([]byte, parquet.Value) []byte {
	value := func(v parquet.Value) int64 {
		if kind == parquet.Int32 {
			return int64(v.Int32())
		}
		return v.Int64()
	}
	switch logical := logical.(type) {
	case nil:
	case *format.IntType:
		if logical.IsSigned {
			break
		}
		return func(b []byte, v parquet.Value) []byte {
			if kind == parquet.Int32 {
				return strconv.AppendUint(b, uint64(uint32(v.Int32())), 10)
			}
			return strconv.AppendUint(b, uint64(v.Int64()), 10)
		}
	case *format.DecimalType:
		return func(b []byte, v parquet.Value) []byte { return appendDecimal(b, big.NewInt(value(v)), logical.Scale) }
	case *format.DateType:
		return func(b []byte, v parquet.Value) []byte {
			return time.Unix(86400*value(v), 0).UTC().AppendFormat(b, time.DateOnly)
		}
	case *format.TimestampType:
		return func(b []byte, v parquet.Value) []byte {
			at := time.Unix(0, value(v))
			switch logical.Unit.Value.(type) {
			case *format.MilliSeconds:
				at = time.UnixMilli(value(v))
			case *format.MicroSeconds:
				at = time.UnixMicro(value(v))
			}
			return appendTime(b, at.UTC())
		}
	default:
		return nil
	}
	return func(b []byte, v parquet.Value) []byte { return strconv.AppendInt(b, value(v), 10) }
}

// twosComplement is a whole number as Parquet stores it in bytes, the highest first.
func twosComplement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

// appendDecimal appends a number of so many decimals, without zeros at the end.
func appendDecimal(b []byte, unscaled *big.Int, scale int32) []byte {
	if scale < 0 || scale > 100 {
		return append(b, "NaN"...)
	}
	digits := new(big.Int).Abs(unscaled).String()
	if missing := int(scale) + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if unscaled.Sign() < 0 {
		b = append(b, '-')
	}
	at := len(digits) - int(scale)
	b = append(b, digits[:at]...)
	if part := strings.TrimRight(digits[at:], "0"); part != "" {
		b = append(append(b, '.'), part...)
	}
	return b
}

// parquetRows reads the rows of all groups, a few at a time.
type parquetRows struct {
	groups []parquet.RowGroup
	open   parquet.Rows
	batch  []parquet.Row
	at, n  int
}

func (r *parquetRows) next() (parquet.Row, error) {
	for r.at == r.n {
		if r.open == nil {
			if len(r.groups) == 0 {
				return nil, io.EOF
			}
			r.open, r.groups = r.groups[0].Rows(), r.groups[1:]
		}
		n, err := r.open.ReadRows(r.batch)
		r.at, r.n = 0, n
		if err == io.EOF || err == nil && n == 0 {
			err = r.close()
		}
		if err != nil {
			return nil, err
		}
	}
	r.at++
	return r.batch[r.at-1], nil
}

func (r *parquetRows) close() error {
	if r.open == nil {
		return nil
	}
	err := r.open.Close()
	r.open = nil
	return err
}

// maxParquet is how many bytes of CSV are held in memory to be written as Parquet.
const maxParquet = 1 << 30

// words are columns of results that are text, whatever their cells look like.
var words = map[string]bool{"id": true, "view": true, "feature": true, "site": true, "predicted": true}

// WriteParquet writes a table with a header, which fill writes as CSV, as a Parquet
// file. The columns id, view, feature, site and predicted are text; any other is of
// double-precision numbers if each of its cells is a number or empty, and else text. An
// empty cell of a number is null.
func WriteParquet(w io.Writer, fill func(io.Writer) error) error {
	var held limited
	if err := fill(&held); err != nil {
		return err
	}
	records, err := csv.NewReader(&held.Buffer).ReadAll()
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return errors.New("a table without a header cannot be written as Parquet")
	}
	header, records := records[0], records[1:]
	group, number := parquet.Group{}, make([]bool, len(header))
	for j, name := range header {
		number[j] = !words[name]
		for _, r := range records {
			_, err := strconv.ParseFloat(r[j], 64)
			number[j] = number[j] && (err == nil || r[j] == "")
		}
		if group[name] = parquet.String(); number[j] {
			group[name] = parquet.Optional(parquet.Leaf(parquet.DoubleType))
		}
	}
	out := parquet.NewWriter(w, parquet.NewSchema("table", ordered{group, header}),
		parquet.Compression(&parquet.Snappy))
	row := make(parquet.Row, len(header))
	for _, r := range records {
		for j, cell := range r {
			v := parquet.ByteArrayValue([]byte(cell)).Level(0, 0, j)
			if number[j] {
				v = parquet.NullValue().Level(0, 0, j)
				if x, err := strconv.ParseFloat(cell, 64); err == nil {
					v = parquet.DoubleValue(x).Level(0, 1, j)
				}
			}
			row[j] = v
		}
		if _, err := out.WriteRows([]parquet.Row{row}); err != nil {
			return err
		}
	}
	return out.Close()
}

// ordered is a group whose fields keep the order of the header; a group sorts them.
type ordered struct {
	parquet.Group
	names []string
}

// Fields lists the columns, as a node of Parquet does.
func (o ordered) Fields() []parquet.Field {
	byName := map[string]parquet.Field{}
	for _, f := range o.Group.Fields() {
		byName[f.Name()] = f
	}
	fields := make([]parquet.Field, len(o.names))
	for i, name := range o.names {
		fields[i] = byName[name]
	}
	return fields
}

type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxParquet {
		return 0, fmt.Errorf("the table is larger than the %d MiB that can be written as Parquet\n  hint: write it as "+
			"CSV", maxParquet>>20)
	}
	return l.Buffer.Write(p)
}
