package verify

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/internal/vectors"
)

// openExample opens the data of the example, in which the Adult data are.
func openExample(name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join("../../../examples/income/data", name))
}

var adultFitted = sync.OnceValues(func() (*adultFit, error) {
	table, err := openAdult(openExample)
	if err != nil {
		return nil, err
	}
	return fitAdult(table, 0, 1)
})

// CompareAdult compares adult-exact with one fit, which takes a second.
func CompareAdult(file []byte) ([]vectors.Check, error) {
	fit, err := adultFitted()
	if err != nil {
		return nil, err
	}
	var f adultJSON
	var list vectors.List
	err = vectors.Decode(file, &f)
	f.compare(&list, fit)
	return list, err
}

// AdultHeader, TwoPeople and Zipped make tables for the tests that run files.
var AdultHeader = strings.Join(slices.Concat(adultNumbers, adultCategories, []string{"income", "split"}), ",") + "\n"

// TwoPeople train and one tests.
const TwoPeople = "1,2,3,4,5,6,a,b,c,d,e,f,g,h,>50K,train\n2,3,4,5,6,7,a,b,c,d,e,f,g,h,<=50K,train\n2,3,4,5,6,7,a,b,c,d,e,f,g,h,<=50K,test\n"

func Zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprint(z, text)
	z.Close()
	return b.Bytes()
}

// Whatever a table holds.
func FuzzOpenAdult(f *testing.F) {
	f.Add(AdultHeader + TwoPeople)
	f.Fuzz(func(t *testing.T, text string) {
		data := Zipped(text)
		table, err := openAdult(func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
		if err != nil {
			return
		}
		e, train, test, err := table.designs(func(row int) bool { return table.cells["split"][row] == "train" })
		if err == nil && (train.Rows()+test.Rows() != table.rows || train.Columns() != e.Width()) {
			t.Errorf("%d and %d rows of %d", train.Rows(), test.Rows(), table.rows)
		}
	})
}
