package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"parley/verify"
)

func verifyCommand() *cobra.Command {
	var as form
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check the program against published test vectors",
		Long:  "Run every test vector of a folder, JSON with a \"schema\", and print where the program disagrees.",
		RunE: func(cmd *cobra.Command, a []string) error {
			report, err := verify.Run(os.DirFS(a[0]))
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
	return as.flag(cmd, "print the agreement of every entry as JSON")
}
