package vectors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Opener opens data that test vectors refer to, by the name of the file.
type Opener func(name string) (io.ReadCloser, error)

// Run runs a file of test vectors by the format that its "schema" names. An
// unknown one is an error, and so is a file that cannot be run.
func Run(file []byte, formats map[string]func(file []byte, list *List) error) ([]Check, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(file, &head); err != nil {
		return nil, fmt.Errorf("test vectors: %w", err)
	}
	run, ok := formats[head.Schema]
	if !ok {
		return nil, fmt.Errorf("test vectors of unknown schema %q", head.Schema)
	}
	var list List
	if err := run(file, &list); err != nil {
		return list, fmt.Errorf("test vectors (%s): %w", head.Schema, err)
	}
	return list, nil
}

// Decode reads JSON whose keys must all be known.
func Decode(file []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("something follows the end of the file")
	}
	return nil
}
