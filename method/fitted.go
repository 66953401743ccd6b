package method

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/internal/files"
	"parley/judge/evaluate"
	"parley/problem"
	"parley/study"
)

// Opener is a [Method] whose fitted models can be used again. A model is
// kept as one JSON object whose "format" is a family and a version, such as
// "parley/mvppca-model/1", and whose "program" says what wrote it.
type Opener interface {
	// ModelFormats lists the formats that OpenModel reads.
	ModelFormats() []string
	OpenModel(data []byte) (Model, error)
}

// Model is a fitted model. What can be done with it is said by the interfaces
// below, of which a method offers those that it has a meaning for.
type Model interface {
	Method() string
	// Schema is what data must look like to be used with the model: its views and features
	// in their order, and the subject columns without which nothing is said of a subject.
	Schema() dataset.Schema
}

// Notes are what a person should know of a use of a model that went well.
type Notes = problem.List

// Cautious is a model that knows of its fit why what it says may not be relied on.
type Cautious interface {
	// Cautions are said first, whatever the model is used for; none of a fit that went well.
	Cautions() Notes
}

// Account is an answer for people and for programs: facts and tables to be
// read, pictures for a page, and the same as a value for JSON.
type Account struct {
	Facts   []figure.Fact
	Figures []figure.Figure
	Tables  []figure.Table
	Notes   Notes
	Value   any
}

// Summariser says what was fitted, where and how. Of long rankings it gives
// the first top.
type Summariser interface {
	Summary(top int) (*Account, error)
}

// Transformer projects new subjects on what the model knows them by.
type Transformer interface {
	// Transform writes one line of CSV for each subject, in the order of data and
	// in bounded memory, and returns their number.
	Transform(ctx context.Context, data dataset.Source, to io.Writer, opts TransformOptions) (int, Notes, error)
}

// TransformOptions say what Transform writes.
type TransformOptions struct {
	Site    string // the site of the fit that the subjects are of; empty for all together
	NewSite bool   // the subjects are of a site that took no part in the fit
}

// Imputer predicts what was not observed.
type Imputer interface {
	// Impute writes one line of CSV for each feature of each subject that was not
	// observed, in the feature's own unit, and returns the number of lines.
	Impute(ctx context.Context, data dataset.Source, to io.Writer, opts ImputeOptions) (int, Notes, error)
}

// ImputeOptions say what Impute writes.
type ImputeOptions struct {
	Site    string   // the site of the fit that the subjects are of; empty for all together
	NewSite bool     // the subjects are of a site that took no part in the fit
	Views   []string // only these; all if empty
	Level   float64  // of the intervals, between 0 and 1
}

// Predictor predicts an outcome, a column that describes subjects, from their
// features.
type Predictor interface {
	// Outcome is what it predicts, as predictions are judged.
	Outcome() evaluate.Outcome
	// Forecaster predicts rows of a schema that has the model's features.
	Forecaster(dataset.Schema) (evaluate.Model, error)
	// Predict writes one line of CSV for each subject, in the order of data and in bounded memory, and returns their
	// number and what is odd about them. Intervals are of the given level, between 0 and 1.
	Predict(ctx context.Context, data dataset.Source, to io.Writer, level float64) (int, Notes, error)
}

// Rotator shows a model's factors on other axes, which changes nothing that it predicts.
type Rotator interface {
	// Rotate returns the files of a model folder, model.json among them, of the model
	// with another rotation of its factors, and what it then says of itself.
	Rotate(to string) ([]File, *Account, error)
}

// Contraster compares two effects of one model.
type Contraster interface {
	// Contrast is the effect named first less the other, with its standard error.
	Contrast(of, against string) (*Account, error)
}

// Comparer compares two models of one method.
type Comparer interface {
	Compare(other Model) (*Account, error)
}

// Associater holds what the model says of single subjects against the columns
// that describe them. The answer is exact, and so for the subjects' own site.
type Associater interface {
	// Associate uses the subject columns of data's schema.
	Associate(ctx context.Context, data dataset.Source, opts AssociateOptions) (*Account, error)
}

// AssociateOptions say what Associate tests.
type AssociateOptions struct {
	Site       string   // the site of the fit that the subjects are of; empty for all together
	Tested     []string // columns that are tested; if empty, all of data's that are not adjusted for
	Categories []string // columns that are categories even if they are written as numbers
	Adjust     []string // columns that every test is adjusted for, and that are not tested
}

// DecodeJSON reads a file of which every byte counts: a name that v does not have is an error, and so is anything
// after it.
func DecodeJSON(data []byte, v any) error { return files.Decode(data, v) }

// CheckFormat returns nil if data is a JSON object of the given format. What
// is another kind of file, or another version of the format, is refused by name.
func CheckFormat(data []byte, format string) error {
	found, program, err := modelFormat(data)
	if err != nil || found == format {
		return err
	}
	if program == "" {
		program = "a program that it does not name"
	}
	if newer(found, format) {
		return problem.Problem{What: fmt.Sprintf("the model's format is %q, written by %s, which is newer than this "+
			"program, which reads %q", found, program, format),
			Hint: "use a newer version of parley"}
	}
	return problem.Problem{What: fmt.Sprintf("the model's format is %q, written by %s, and this program reads %q",
		found, program, format)}
}

// EncodeModel writes model.json: the same model always gives the same bytes.
func EncodeModel(m any) ([]byte, error) {
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing the model: %w", err)
	}
	return append(data, '\n'), nil
}

// DecodeModel reads model.json of one of some formats. Any other is refused by name, and so is a model that does not
// pass the check.
func DecodeModel[M any](data []byte, check func(*M) error, formats ...string) (*M, error) {
	known := func(format string) bool { return CheckFormat(data, format) == nil }
	if !slices.ContainsFunc(formats, known) {
		return nil, CheckFormat(data, formats[0])
	}
	m := new(M)
	err := json.Unmarshal(data, m)
	if err == nil {
		err = check(m)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a model: %w", err)
	}
	return m, nil
}

func modelFormat(data []byte) (format, program string, err error) {
	var head struct {
		Format  string `json:"format"`
		Program string `json:"program"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return "", "", problem.Problem{What: "this is not a model: " + err.Error(),
			Hint: "a model is the file model/model.json of a run's results"}
	}
	if head.Format == "" {
		return "", "", problem.Problem{What: `this is not a model: it has no "format"`,
			Hint: "a model is the file model/model.json of a run's results"}
	}
	return head.Format, head.Program, nil
}

// newer says whether a is a later version of the same family of formats as b.
func newer(a, b string) bool {
	fa, va, ok := family(a)
	fb, vb, okB := family(b)
	return ok && okB && fa == fb && va > vb
}

func family(format string) (name string, version int, ok bool) {
	i := strings.LastIndexByte(format, '/')
	if i < 0 {
		return format, 0, false
	}
	version, err := strconv.Atoi(format[i+1:])
	return format[:i], version, err == nil
}

// OpenModel reads a model of any method that the program knows.
func OpenModel(methods Registry, data []byte) (Model, error) {
	format, program, err := modelFormat(data)
	if err != nil {
		return nil, err
	}
	var known []string
	name, _, _ := family(format)
	for _, m := range methods {
		opener, ok := m.(Opener)
		if !ok {
			continue
		}
		formats := opener.ModelFormats()
		if slices.Contains(formats, format) {
			return opener.OpenModel(data)
		}
		for _, f := range formats {
			if other, _, _ := family(f); other == name {
				return nil, CheckFormat(data, f)
			}
		}
		known = append(known, formats...)
	}
	return nil, problem.Problem{What: fmt.Sprintf("the model's format is %q, written by %q: no method of this program "+
		"has it", format, program),
		Hint: "this program reads " + strings.Join(known, ", ")}
}

// ModelJSON is the model among the files of a result. It is an error if there is none.
func ModelJSON(files []File) ([]byte, error) {
	i := slices.IndexFunc(files, func(f File) bool { return f.Name == "model/model.json" })
	if i < 0 {
		return nil, errors.New("the result has no model/model.json")
	}
	return files[i].Data, nil
}

// ModelView is a view of a model file: its columns in their order.
type ModelView struct {
	Name    string        `json:"name"`
	Columns []ModelColumn `json:"columns"`
}

// ModelColumn is a feature; a category if it has levels.
type ModelColumn struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit,omitempty"`
	Levels []string `json:"levels,omitempty"`
	Other  string   `json:"other,omitempty"` // level that one not listed counts as
	// Missing are cells that stand for a missing value.
	Missing []string `json:"missing,omitempty"`
}

// ModelViews lists a plan's views.
func ModelViews(p *study.Plan) (views []ModelView) {
	for k, v := range p.Views {
		view := ModelView{Name: v.Name}
		for j, f := range v.Features {
			c := ModelColumn{Name: f.Name, Unit: f.Unit, Missing: p.Codes(k, j)}
			if f.Kind == study.Category {
				c.Levels, c.Other = f.Levels, f.Other
			}
			view.Columns = append(view.Columns, c)
		}
		views = append(views, view)
	}
	return views
}

// ViewsSchema is that of data with these views.
func ViewsSchema(views []ModelView) (s dataset.Schema) {
	for _, v := range views {
		view := dataset.View{Name: v.Name}
		for _, c := range v.Columns {
			kind := dataset.Number
			if len(c.Levels) > 0 {
				kind = dataset.Category
			}
			view.Columns = append(view.Columns, dataset.Column{Name: c.Name, Kind: kind, Levels: c.Levels,
				Other: c.Other, Missing: c.Missing})
		}
		s.Views = append(s.Views, view)
	}
	return s
}
