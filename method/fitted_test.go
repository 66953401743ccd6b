package method

import (
	"errors"
	"strings"
	"testing"

	"parley/dataset"
)

// opener is a method that has models and nothing else.
type opener struct {
	Method
	name    string
	formats []string
}

func (o opener) Name() string           { return o.name }
func (o opener) ModelFormats() []string { return o.formats }
func (o opener) OpenModel(data []byte) (Model, error) {
	if strings.Contains(string(data), "broken") {
		return nil, errors.New("it is broken")
	}
	return opened{o.name}, nil
}

type opened struct{ method string }

func (o opened) Method() string         { return o.method }
func (o opened) Schema() dataset.Schema { return dataset.Schema{} }

var openers = Registry{
	opener{name: "first", formats: []string{"parley/first-model/2", "parley/first-model/3"}},
	opener{name: "second", formats: []string{"parley/second-model/1"}},
}

func TestModelsAreOpenedByTheirFormat(t *testing.T) {
	for format, want := range map[string]string{"parley/first-model/2": "first", "parley/first-model/3": "first",
		"parley/second-model/1": "second"} {
		m, err := OpenModel(openers, []byte(`{"format": "`+format+`"}`))
		if err != nil || m.Method() != want {
			t.Errorf("%s: %v, %v", format, m, err)
		}
	}
}

func TestOtherModelsAreRefusedByName(t *testing.T) {
	for data, want := range map[string]string{
		`{"format": "parley/second-model/4", "program": "parley 7"}`: `"parley/second-model/4", written by parley 7, ` +
			`which is newer than this program`,
		`{"format": "parley/first-model/1"}`: `"parley/first-model/1", written by a program ` +
			`that it does not name, and this program reads "parley/first-model/2"`,
		`{"format": "parley/third-model/1", "program": "x"}`: `no method of this program has it`,
		`{"format": "pickle"}`: `hint: this program reads parley/first-model/2, ` +
			`parley/first-model/3, parley/second-model/1`,
		`{}`:     `it has no "format"`,
		`[1, 2]`: `this is not a model`,
		`id,age`: `this is not a model`,
		``:       `this is not a model`,
	} {
		if m, err := OpenModel(openers, []byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", data, m, err, want)
		}
	}
}
