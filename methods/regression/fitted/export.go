package fitted

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"

	"parley/method"
	"parley/problem"
)

// ExportFormats implements [method.Exporter].
func (m *Model) ExportFormats() []string { return []string{"csv"} }

// Export implements [method.Exporter].
func (m *Model) Export(format string) ([]method.File, error) {
	if format != "csv" {
		return nil, problem.Problem{Where: "format", What: fmt.Sprintf("a model of pvi is not written as %q", format), Hint: "csv"}
	}
	files, err := m.Files()
	if err != nil {
		return nil, err
	}
	files = files[1:] // of the model itself there is no other form
	for i := range files {
		files[i].Name = strings.TrimPrefix(files[i].Name, "model/")
	}
	if m.Covariance != nil {
		return files, nil
	}
	factors, err := m.factorsCSV()
	return append(files, method.File{Name: "factors.csv", Data: factors}), err
}

// posteriorCSV is the posterior as a table for other programs: effects in the
// features' own units with an interval of 90 %, and the weights of scaled columns.
func (m *Model) posteriorCSV() ([]byte, error) {
	z := m.Deviate(Z90)
	mean, variance := m.Posterior.Moments()
	records := [][]string{{"class", "feature", "mean", "sd", "low_90", "high_90", "weight_mean", "weight_sd"}}
	for j, e := range m.Effects {
		records = append(records, []string{e.Class, e.Feature, decimal(e.Mean), decimal(e.SD),
			decimal(e.Mean - z*e.SD), decimal(e.Mean + z*e.SD), decimal(mean[j]), decimal(math.Sqrt(variance[j]))})
	}
	return writeCSV(records)
}

// factorsCSV is what each site contributed, in natural parameters.
func (m *Model) factorsCSV() ([]byte, error) {
	records := [][]string{{"site", "class", "feature", "precision_mean", "precision"}}
	names := m.Encoding.Features()
	for _, s := range m.Sites {
		for k, class := range m.Options.Classes() {
			for j, name := range names {
				i := k*len(names) + j
				records = append(records, []string{s.Name, class, name, decimal(s.Factor.Eta[i]), decimal(s.Factor.Lambda[i])})
			}
		}
	}
	return writeCSV(records)
}

func writeCSV(records [][]string) ([]byte, error) {
	var b bytes.Buffer
	err := csv.NewWriter(&b).WriteAll(records)
	return b.Bytes(), err
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
