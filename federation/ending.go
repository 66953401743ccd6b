package federation

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	encoding "parley/internal/wire"
)

// Ending is what a site gets when a study has ended.
type Ending struct {
	Share []byte // for the site's half of the method, to report to its own people
	Files []File // of the coordinator's results: the model, and what else everybody may read
	Words string // why there is nothing more; empty at a good end
}

// File is one of the results.
type File struct {
	_    struct{} `cbor:",toarray"`
	Name string   // relative, with forward slashes
	Data []byte
}

// sharedFiles are those of the coordinator's results that sites get.
var sharedFiles = []string{"plan.yaml", "metrics.json", "privacy.json", "rounds.jsonl", "report.html"}

// Shared says whether a file of the coordinator's results is for the sites.
func Shared(name string) bool {
	return slices.Contains(sharedFiles, name) || strings.HasPrefix(name, "model/")
}

// Packed are results, compressed once for all sites.
type Packed struct {
	data  []byte
	words string // what was left out; empty if nothing was
}

// Pack compresses files to at most so many bytes. If need be it leaves some out, the
// model last.
func Pack(files []File, most int) (p Packed, err error) {
	for _, keep := range []func(name string) bool{
		func(string) bool { return true },
		func(name string) bool { return strings.HasPrefix(name, "model/") },
		func(string) bool { return false },
	} {
		kept := slices.DeleteFunc(slices.Clone(files), func(f File) bool { return !keep(f.Name) })
		if len(kept) < len(files) {
			p.words = "some of the results are too large to be sent: ask the coordinator's people for them"
		}
		if p.data, err = compress(kept); err != nil || len(p.data) <= most {
			return p, err
		}
	}
	return p, nil
}

func compress(files []File) ([]byte, error) {
	data, err := encoding.Marshal(files)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// sentEnding is an ending as it is sent.
type sentEnding struct {
	_     struct{} `cbor:",toarray"`
	Share []byte
	Files []byte // compressed
	Words string
}

// Encode makes the bytes of an ending whose files were packed before.
func (e Ending) Encode(files Packed) ([]byte, error) {
	if e.Words == "" {
		e.Words = files.words
	}
	return encoding.Marshal(sentEnding{Share: e.Share, Files: files.data, Words: e.Words})
}

// ParseEnding reads what [Ending.Encode] wrote. Files that are not for sites, or
// whose names lead elsewhere, are an error.
func ParseEnding(data []byte) (Ending, error) {
	e, err := parseEnding(data)
	if err != nil {
		return Ending{}, fmt.Errorf("the end of the study: %w", err)
	}
	return e, nil
}

func parseEnding(data []byte) (e Ending, err error) {
	var sent sentEnding
	if err := encoding.Unmarshal(data, &sent); err != nil {
		return e, err
	}
	e.Share, e.Words = sent.Share, Printable(sent.Words)
	if len(sent.Files) == 0 {
		return e, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(sent.Files))
	if err != nil {
		return e, err
	}
	plain, err := io.ReadAll(io.LimitReader(z, encoding.MaxBytes+1))
	if err == nil {
		err = encoding.Unmarshal(plain, &e.Files)
	}
	if err != nil {
		return e, err
	}
	for _, f := range e.Files {
		if f.Name != path.Clean(f.Name) || strings.ContainsAny(f.Name, `\:`) || !Shared(f.Name) {
			return e, fmt.Errorf("it names a file %.200q, which is not one of the results", f.Name)
		}
	}
	return e, nil
}
