package measured

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

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

const headings = "%s\nversion %s, %.0f seconds\n\n"

// Write keeps the record in a folder.
func (r *Record) Write(dir string) error {
	return atomicfile.Write(filepath.Join(dir, name(r.Command)), fmt.Appendf(nil, headings+"%s", r.Command, r.Version, r.Seconds, r.Output))
}

// Read returns the output that a folder's record of a command has.
func Read(dir, command string) (string, error) {
	file := filepath.Join(dir, name(command))
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
