package dataset

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/tabular"
	"parley/problem"
)

// files are the names of a data set's files, and of what is beside them.
type files struct {
	alone    bool     // the data set is a long table by itself, not a folder
	mapping  *mapping // nil if there is none
	unmapped error    // what is wrong with it: then nothing is known of the tables
	subjects string
	long     string

	ofSubjects *tableMapping // how they come from their file, nil if as it stands
	views      []viewFile    // in ascending order of name
	strays     []*stray
	warnings   problem.List
}

// mapped is how the views come from their files.
func (f *files) mapped() (all []*tableMapping) {
	for _, v := range f.views {
		all = append(all, v.from)
	}
	return all
}

type viewFile struct {
	name, path string
	from       *tableMapping // how it comes from its file, nil if as it stands
}

// Files returns the paths of the files that a data set at path consists of, in
// either form and whatever a plan names of them; none if there is no data set.
func Files(path string) (paths []string) {
	found, _ := listFiles(path) // what is wrong with it is for Open to say
	if found == nil {
		return nil
	}
	all := []string{found.subjects, found.long}
	for _, v := range found.views {
		all = append(all, v.path)
	}
	if found.mapping != nil {
		all = append(all, found.mapping.path)
	}
	for _, file := range all {
		if file != "" && !slices.Contains(paths, file) { // one may hold several tables
			paths = append(paths, file)
		}
	}
	return paths
}

// Tables returns the names of the files in a folder that probably hold tables, by their
// endings and whatever else they are called, in ascending order; none if it cannot be read.
func Tables(folder string) []string {
	entries, _ := os.ReadDir(folder)
	var all []*stray
	for _, e := range entries {
		if s := newStray(filepath.Join(folder, e.Name())); s != nil && !e.IsDir() {
			all = append(all, s)
		}
	}
	return tables(all)
}

// findFiles finds out which form a data set has. A file that seems to be one that
// the schema wants, but for its name, is an error.
func findFiles(path string, schema *Schema) (*files, error) {
	found, err := listFiles(path)
	list, ok := err.(problem.List)
	if err != nil && !ok || found == nil {
		return nil, err
	}
	if found.unmapped != nil {
		return nil, found.unmapped
	}
	if found.alone {
		found.lookBeside()
		return found, list.Err()
	}
	misnamed := found.misnamed(schema)
	list = append(list, misnamed...)
	subject := func(p problem.Problem) bool { return p.Where == wantSubjects.where }
	layout := "a data set is subjects.csv and one view_NAME.csv for each view, or long.csv; each may end in one of " +
		strings.Join(readable, ", ")
	switch {
	case found.long != "" && len(found.views) > 0:
		list.Add(problem.Problem{File: found.long, What: "is a long table beside files of views",
			Hint: "keep one form: " + layout})
	case found.long == "" && len(found.views) == 0:
		if slices.ContainsFunc(misnamed, func(p problem.Problem) bool { return !subject(p) }) {
			break // it holds one that is not named so
		}
		p := problem.Problem{File: path, What: "holds no views", Hint: layout}
		if names := tables(found.strays); len(names) > 0 {
			p.Hint += "\nfound " + strings.Join(names[:min(len(names), maxFaults)], ", ")
			if len(names) == 1 && ending(names[0]) != "" {
				p.Hint += "\nif that is all that the site has, parley data map, with the study's plan, drafts a " +
					"mapping of its columns"
			}
			for _, name := range names[:min(len(names), maxFaults)] {
				if how := Export(name); strings.HasPrefix(how, "write") {
					p.Hint += "\n" + how
				}
			}
		}
		list.Add(p)
	case found.long == "" && found.subjects == "" && !slices.ContainsFunc(misnamed, subject):
		p := problem.Problem{File: path, What: "has no subjects.csv",
			Hint: "list the ids of all subjects in a column id, with columns such as group or sex if there are any"}
		if names := tables(found.strays); len(names) > 0 {
			p.Hint += "\nor rename the file that does so: " + problem.Names(names)
		}
		list.Add(p)
	}
	return found, list.Err()
}

// readable are the endings of names that can be read.
var readable = []string{".csv", ".csv.gz", ".xlsx", ".parquet", ".dta", ".sav", ".zsav", ".xpt"}

// Reads says whether files of this name, in lower case, are read.
func Reads(name string) bool { return ending(name) != "" }

// ending returns how the name of a file that can be read ends, "" for others.
func ending(name string) string {
	for _, kind := range readable {
		if strings.HasSuffix(name, kind) {
			return kind
		}
	}
	return ""
}

// listFiles sorts the files of a folder, or those beside a long table, by their names.
func listFiles(path string) (*files, error) {
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return nil, problem.List{{File: path, What: "does not exist",
			Hint: "give a folder with subjects.csv and view_NAME.csv files, or a long table"}}
	} else if err != nil {
		return nil, err
	}
	found := &files{}
	folder := path
	if !info.IsDir() {
		found.alone, found.long, folder = true, path, filepath.Dir(path)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var list problem.List
	paths := map[string]string{} // by name without .gz
	for _, e := range entries {
		kind := ending(e.Name())
		base := strings.TrimSuffix(e.Name(), kind)
		name, isView := strings.CutPrefix(base, "view_")
		isView = isView && name != ""
		full := filepath.Join(folder, e.Name())
		isCSV := strings.HasPrefix(kind, ".csv")
		// Beside a CSV file, the workbook that it was saved from is not another view.
		if kind == "" || !isCSV && paths[base] != "" || base != "subjects" &&
			(found.alone || base != "long" && !isView) {
			if s := newStray(full); s != nil && !e.IsDir() && full != filepath.Clean(path) {
				found.strays = append(found.strays, s)
			}
			continue
		}
		if other, taken := paths[base]; taken {
			list.Add(problem.Problem{File: full, What: "is there twice, also as " + filepath.Base(other),
				Hint: "keep one of them"})
			continue
		}
		paths[base] = full
		switch {
		case isView:
			found.views = append(found.views, viewFile{name: name, path: full})
		case base == "long":
			found.long = full
		default:
			found.subjects = full
		}
	}
	slices.SortFunc(found.views, func(a, b viewFile) int { return strings.Compare(a.name, b.name) })
	if !found.alone && len(list) == 0 {
		if found.mapping, found.unmapped = loadMapping(folder); found.mapping != nil {
			found.unmapped = found.mapping.into(found)
		}
	}
	return found, list.Err()
}

// misnamed tells which files seem to be wanted ones that are not here, and warns
// of others that are like those that are.
func (f *files) misnamed(schema *Schema) (list problem.List) {
	all := []wanted{wantSubjects.found(f.subjects != "")}
	if schema == nil {
		for _, v := range f.views {
			all = append(all, wantView(v.name).found(true))
		}
	} else {
		for _, w := range schema.Views {
			at := slices.IndexFunc(f.views, func(v viewFile) bool { return v.name == w.Name })
			// a long table is read before anything is missed in it
			all = append(all, wantView(w.Name).found(at >= 0 || f.long != ""))
		}
		for _, v := range f.views {
			s := newStray(v.path)
			if w := s.meant(all); w != nil && !w.here &&
				!slices.ContainsFunc(schema.Views, func(w View) bool { return w.Name == v.name }) {
				list.Add(s.insteadOf(w))
			}
		}
	}
	for _, s := range f.strays {
		switch w := s.meant(all); {
		case w != nil && !w.here:
			list.Add(s.insteadOf(w))
		case w != nil || s.surely || s.view:
			f.warnings.Add(s.ignored())
		}
	}
	return list
}

// lookBeside warns of what may be the subjects of a long table, which has none
// or others beside it: the folder is not the data set's own.
func (f *files) lookBeside() {
	for _, s := range f.strays {
		if w := s.meant([]wanted{wantSubjects}); w != nil && f.subjects == "" {
			f.warnings.Add(s.insteadOf(w))
		}
	}
}

const saveAs = "save it as CSV in UTF-8, with commas and decimal points"

// foreign is what begins otherwise than CSV in UTF-8 does.
var foreign = []struct{ begins, what, hint string }{
	{"\xff\xfe", "is UTF-16, not UTF-8", saveAs},
	{"\xfe\xff", "is UTF-16, not UTF-8", saveAs},
	{"PK\x03\x04", "is a spreadsheet workbook or a zip archive, not CSV",
		"if it is an Excel workbook, let its name end in .xlsx; otherwise " + saveAs},
	{"\xd0\xcf\x11\xe0", "is a workbook of Excel 97 to 2003 (.xls), not CSV", "save it as .xlsx, or as CSV in UTF-8"},
	{"<", "is HTML or XML, not CSV", "open it in a spreadsheet program, and " + saveAs},
	{"PAR1", "is a Parquet file, not CSV", "let its name end in .parquet"},
	{"$FL2", "is a data set of SPSS, not CSV", "let its name end in .sav"},
	{"$FL3", "is a data set of SPSS, not CSV", "let its name end in .sav"},
	{"\x00", "is not text, or UTF-16 without a byte order mark", saveAs},
}

// input is one file of a data set, as it was when the data set was opened.
type input struct {
	path    string
	size    int64
	changed time.Time
	from    *tableMapping   // what the rows come from, and how; nil if they are as they stand
	words   map[string]bool // columns that hold no numbers, as they are called here
}

func newInput(path string, from *tableMapping, words map[string]bool) (input, error) {
	info, err := os.Stat(path)
	if err != nil {
		return input{}, err
	}
	if !info.Mode().IsRegular() {
		return input{}, problem.Problem{File: path, What: "is not a regular file"}
	}
	if from != nil {
		here := maps.Clone(words)
		if here == nil {
			here = map[string]bool{}
		}
		here[from.ID] = true
		for _, c := range from.Columns {
			if words[c.Name] || len(c.Levels) > 0 {
				here[cmp.Or(c.From, c.Name)] = true
			}
		}
		from.words, words = words, here
	}
	return input{path, info.Size(), info.ModTime(), from, words}, nil
}

// records reads the rows as the site has them, with the ids first. Where records are tolerated that cannot be read,
// each is one line.
func (in input) records(tolerant bool) (records, error) {
	s, err := newSplitter(in, tolerant)
	if err != nil || in.from == nil || in.from.ID == "" {
		return s, err
	}
	return &idFirst{src: s, name: in.from.ID, at: -1}, nil
}

// open returns the text of the file: decompressed if it starts as gzip does,
// whatever its name, and without a byte order mark. The text is read ahead by
// a goroutine where it has to be decompressed; Close ends it.
// Another dialect of CSV is written anew; records that cannot be read may be tolerated, which are lines then.
func (in input) open(tolerant bool) (io.ReadCloser, error) {
	f, err := os.Open(in.path)
	if err != nil {
		return nil, err
	}
	r, err := in.text(f, tolerant)
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

func (in input) text(f *os.File, tolerant bool) (io.ReadCloser, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != in.size || !info.ModTime().Equal(in.changed) {
		return nil, in.problem("has changed since it was opened", "start again with the new data")
	}
	if in.from != nil && in.from.SQL != nil {
		f.Close()
		text, err := in.from.SQL.Open()
		if err != nil {
			return nil, in.problem(err.Error(), "")
		}
		return text, nil
	}
	if kind := ending(in.path); formats[kind].read != nil {
		return in.decode(f, kind, tolerant)
	}
	raw := bufio.NewReaderSize(f, 64<<10)
	var text io.ReadCloser = struct {
		*bufio.Reader
		io.Closer
	}{raw, f}
	if magic, _ := raw.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(raw)
		if err != nil {
			return nil, in.problem("is damaged: "+err.Error(), "copy or compress it again")
		}
		text = newReadAhead(z, f)
	}
	start := bufio.NewReaderSize(text, 256<<10)
	mark, err := start.Peek(4)
	if err != nil && err != io.EOF {
		text.Close()
		return nil, in.damaged(err)
	}
	if end := bytes.IndexByte(mark, '\n'); end >= 0 { // what follows is of rows
		mark = mark[:end]
	}
	if bytes.HasPrefix(mark, []byte("\xef\xbb\xbf")) {
		start.Discard(3)
	}
	for _, k := range foreign {
		if bytes.HasPrefix(mark, []byte(k.begins)) || k.begins == "\x00" && bytes.IndexByte(mark, 0) >= 0 {
			text.Close()
			return nil, in.problem(k.what, k.hint)
		}
	}
	var usual io.Reader = start
	head, _ := start.Peek(start.Size())
	if d := dialectOf(head); !d.usual() {
		usual = newRewriter(start, d, in.words, tolerant)
	}
	return struct {
		io.Reader
		io.Closer
	}{usual, text}, nil
}

const spssHint = "save it in Unicode and without a password, or as CSV with value labels"

// formats are those of files that hold no text, by their endings.
var formats = map[string]struct {
	name string
	read func(io.ReaderAt, int64) (io.ReadCloser, error)
	hint string
	// tolerant is read where no cell of a record may show in another; nil where read does so.
	tolerant func(io.ReaderAt, int64) (io.ReadCloser, error)
}{
	".xlsx": {"an Excel workbook", tabular.XLSX, "save the one sheet that holds the table as .xlsx, or as CSV in " +
		"UTF-8", tabular.TolerantXLSX},
	".dta": {"a data set of Stata", tabular.Stata, "save it by saveold, or as CSV by export delimited", nil},
	".xpt": {"a SAS transport file", tabular.Xport, "write one data set by proc copy, or as CSV by proc export",
		nil},
	".sav":  {"a data set of SPSS", tabular.SPSS, spssHint, nil},
	".zsav": {"a data set of SPSS", tabular.SPSS, spssHint, nil},
	".parquet": {"Parquet", tabular.Parquet, "write texts, numbers and dates in flat columns, or save it as CSV in " +
		"UTF-8", nil},
}

// decode returns the table in such a file as CSV.
func (in input) decode(f *os.File, kind string, tolerant bool) (io.ReadCloser, error) {
	format := formats[kind]
	read := format.read
	if tolerant && format.tolerant != nil {
		read = format.tolerant
	}
	text, err := read(f, in.size)
	if err != nil {
		return nil, in.problem("cannot be read as "+format.name+": "+err.Error(), format.hint)
	}
	return struct {
		io.Reader
		io.Closer
	}{text, closers{text, f}}, nil
}

// closers closes all.
type closers []io.Closer

func (c closers) Close() error {
	var errs []error
	for _, one := range c {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

func (in input) problem(what, hint string) problem.Problem {
	return problem.Problem{File: in.path, What: what, Hint: hint}
}

// damaged explains an error of the decompressor, of the disk or of a database.
func (in input) damaged(err error) error {
	if in.from != nil && in.from.SQL != nil {
		return in.problem(err.Error(), "")
	}
	return in.problem("cannot be read to its end: "+err.Error(), "copy or compress it again")
}

// readAhead reads in a goroutine of its own, a few blocks ahead.
type readAhead struct {
	src     io.Closer
	blocks  chan block // filled
	spare   chan []byte
	stop    chan struct{}
	done    chan struct{}
	close   sync.Once
	current block
	off     int
}

type block struct {
	data []byte
	err  error // after data
}

const aheadBlocks, aheadBlockSize = 4, 128 << 10

func newReadAhead(r io.Reader, src io.Closer) *readAhead {
	a := &readAhead{
		src:    src,
		blocks: make(chan block, aheadBlocks),
		spare:  make(chan []byte, aheadBlocks),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	for range aheadBlocks {
		a.spare <- make([]byte, aheadBlockSize)
	}
	go func() {
		defer close(a.done)
		defer close(a.blocks)
		for {
			var buf []byte
			select {
			case buf = <-a.spare:
			case <-a.stop:
				return
			}
			n, err := 0, error(nil)
			for n < len(buf) && err == nil {
				var m int
				m, err = r.Read(buf[n:])
				n += m
			}
			a.blocks <- block{buf[:n], err} // never blocks: as many blocks as places
			if err != nil {
				return
			}
		}
	}()
	return a
}

func (a *readAhead) Read(p []byte) (int, error) {
	for a.off == len(a.current.data) {
		if a.current.err != nil {
			return 0, a.current.err
		}
		if a.current.data != nil {
			a.spare <- a.current.data[:cap(a.current.data)]
		}
		next, ok := <-a.blocks
		if !ok {
			return 0, os.ErrClosed
		}
		a.current, a.off = next, 0
	}
	n := copy(p, a.current.data[a.off:])
	a.off += n
	return n, nil
}

// Close ends the goroutine and waits until it has let go of the file.
func (a *readAhead) Close() error {
	a.close.Do(func() { close(a.stop) })
	<-a.done
	return a.src.Close()
}
