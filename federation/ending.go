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

// Encode compresses an ending to at most so many bytes. If need be it leaves files
// out, the model last, and says so.
func (e Ending) Encode(most int) ([]byte, error) {
	for _, keep := range []func(name string) bool{
		func(string) bool { return true },
		func(name string) bool { return strings.HasPrefix(name, "model/") },
		func(string) bool { return false },
	} {
		short := e
		short.Files = slices.DeleteFunc(slices.Clone(e.Files), func(f File) bool { return !keep(f.Name) })
		if len(short.Files) < len(e.Files) {
			short.Words = "some of the results are too large to be sent: ask the coordinator's people for them"
		}
		data, err := short.compress()
		if err != nil || len(data) <= most {
			return data, err
		}
	}
	return nil, fmt.Errorf("what the site may have is larger than %d bytes", most)
}

func (e Ending) compress() ([]byte, error) {
	data, err := encoding.Marshal(e)
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

// ParseEnding reads what [Ending.Encode] wrote. Files that are not for sites, or
// whose names lead elsewhere, are an error.
func ParseEnding(data []byte) (e Ending, err error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return e, fmt.Errorf("the end of the study: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, encoding.MaxBytes+1))
	if err == nil {
		err = encoding.Unmarshal(plain, &e)
	}
	if err != nil {
		return e, fmt.Errorf("the end of the study: %w", err)
	}
	for _, f := range e.Files {
		if f.Name != path.Clean(f.Name) || strings.ContainsAny(f.Name, `\:`) || !Shared(f.Name) {
			return e, fmt.Errorf("the end of the study names a file %q, which is not one of the results", f.Name)
		}
	}
	return e, nil
}
