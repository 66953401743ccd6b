// Package clone finds the clone of the repository that a program of this module stands in.
package clone

import (
	"bytes"
	"os"
)

// Enter goes from the folder of this module, where go run -C papers begins a program, to
// the root of the repository, by which paths on a command line then go. Elsewhere the
// program stays where it is.
func Enter() error {
	if text, err := os.ReadFile("go.mod"); err != nil || !bytes.HasPrefix(text, []byte("module parley/papers\n")) {
		return nil
	}
	return os.Chdir("..")
}
