package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"parley/judge/conformance"
)

func verifyCommand() *cobra.Command {
	var as form
	var data string
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check the program against published test vectors",
		Long:  "Run every test vector of a folder, JSON with a \"schema\", and print where the program disagrees.",
		RunE: func(cmd *cobra.Command, a []string) error {
			folder := cmp.Or(data, filepath.Join(a[0], "..", "..", "data", "adult"))
			open := func(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(folder, name)) }
			report, err := conformance.Run(os.DirFS(a[0]), conformance.Known(methods), conformance.Means(methods, open))
			if err != nil {
				return fmt.Errorf("verifying %s: %w", a[0], err)
			}
			err = as.object(cmd, report, report.Print)
			if err == nil && !report.OK {
				err = errors.New("this installation does not agree with the test vectors")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "folder of the Adult data, for pvi/adult-exact (default DIR/../../data/adult)")
	return as.flag(cmd, "print the agreement of every entry as JSON")
}
