package measured

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"parley/experiment"
	"parley/internal/atomicfile"
)

// Record is what a command printed.
type Record struct {
	Command string
	Version string // of the program, with the commit
	Seconds float64
	Output  string
}

// name is the file of a command's record.
func name(command string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, strings.TrimPrefix(command, Program)) + ".txt"
}

// Write keeps the record in the folder of the documentation.
func (r *Record) Write(docs string) error {
	return atomicfile.Write(filepath.Join(docs, "records", name(r.Command)), fmt.Appendf(nil, "%s\nversion %s, %.0f seconds\n\n%s", r.Command, r.Version, r.Seconds, r.Output))
}

// ofExperiment is what the other commands begin with. Their records are those that
// parley experiment report makes pages of.
const ofExperiment = "parley experiment run "

// Read returns what the documentation's record of a command says that it printed; of an
// experiment, the tables of its page.
func Read(docs, command string) (string, error) {
	if of, ok := strings.CutPrefix(command, ofExperiment); ok {
		r, err := experiment.Kept(filepath.Join(docs, "experiments"), of)
		if err != nil {
			return "", err
		}
		return r.Markdown(), nil
	}
	file := filepath.Join(docs, "records", name(command))
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	heading, output, ok := strings.Cut(string(data), "\n\n")
	if !ok || !strings.HasPrefix(heading, command+"\n") {
		return "", fmt.Errorf("%s is no record of %s", file, command)
	}
	return output, nil
}
