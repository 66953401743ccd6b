package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// runBigCSV writes a large synthetic data set, sorted by id, to measure
// reading with: subjects.csv and view_big.csv with four-decimal numbers.
//
//	go run -C papers ./measure bigcsv -rows 10000000 -columns 40 -out DIR
//
// The numbers are a function of the seed; they resemble nobody.
func runBigCSV(_ context.Context, args []string) error {
	set := flag.NewFlagSet("bigcsv", flag.ContinueOnError)
	rows := set.Int("rows", 10_000_000, "subjects, at most 999999999")
	columns := set.Int("columns", 40, "features")
	seed := set.Uint64("seed", 1, "seed of the numbers")
	out := set.String("out", "", "folder to write to")
	if err := parse(set, args, func() error {
		if *out == "" || *rows < 1 || *rows > 999_999_999 || *columns < 1 {
			return errors.New("-out is needed, and at least a row and a column")
		}
		return nil
	}); err != nil {
		return err
	}
	return generate(*out, *rows, *columns, *seed)
}

func generate(dir string, rows, columns int, seed uint64) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	err := write(filepath.Join(dir, "subjects.csv"), []byte("id,group\n"), rows, func(b []byte, i int) []byte {
		return append(b, ",a\n,b\n"[i%2*3:i%2*3+3]...)
	})
	header := []byte("id")
	for j := range columns {
		header = fmt.Appendf(header, ",x%03d", j+1)
	}
	src := rand.New(rand.NewPCG(seed, 0))
	numbers := func(b []byte, _ int) []byte {
		for j := range columns {
			b = append(b, ',')
			b = strconv.AppendFloat(b, float64(j)+10*src.NormFloat64(), 'f', 4, 64)
		}
		return append(b, '\n')
	}
	return errors.Join(err, write(filepath.Join(dir, "view_big.csv"), append(header, '\n'), rows, numbers))
}

// write writes one table; rest appends what follows the id of row i.
func write(path string, header []byte, rows int, rest func(b []byte, i int) []byte) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := w.Write(header); err != nil {
		return err
	}
	var line []byte
	for i := range rows {
		line = rest(fmt.Appendf(line[:0], "s%09d", i+1), i)
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return w.Flush()
}
