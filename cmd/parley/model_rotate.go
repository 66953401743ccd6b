package main

import (
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"parley/method"
	"parley/method/fitted"
)

func modelRotateCommand() *cobra.Command {
	var to, out string
	var force bool
	var as form
	cmd := &cobra.Command{
		Use:   "rotate MODEL --to varimax|promax --out DIR",
		Short: "Turn the factors towards simple structure, and write the model with them",
		Long: "Rotate writes model.json and loadings.csv of the same model with other axes for its\n" +
			"factors: varimax keeps them uncorrelated, promax lets them correlate, none is the form of\n" +
			"the fit. Predictions and likelihoods stay; scores, loadings and tests are of the rotated\n" +
			"factors wherever DIR is used as MODEL.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := checkFolder(out); err != nil {
				return err
			}
			m, err := openModel[fitted.Rotator](a[0], "rotated")
			if err != nil {
				return err
			}
			files, account, err := m.Rotate(to)
			if err != nil {
				return err
			}
			if err := writeFiles(files, out, force, inputsOf(a)); err != nil {
				return err
			}
			return printAccount(cmd, account, as)
		},
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "varimax, promax or none")
	f.StringVar(&out, "out", "", "folder to write to")
	f.BoolVar(&force, "force", false, forceUsage)
	as.flag(cmd, "print the summary of the rotated model as JSON")
	cmd.MarkFlagRequired("to")
	cmd.MarkFlagRequired("out")
	return cmd
}

// writeFiles writes files into a folder, or none of them if one is in the way.
func writeFiles(files []method.File, dir string, force bool, inputs []string) error {
	outputs := make([]output, len(files))
	for i, f := range files {
		outputs[i] = output{path: filepath.Join(dir, filepath.FromSlash(f.Name)), force: force}
		if err := outputs[i].check(inputs...); err != nil {
			return err
		}
	}
	for i, f := range files {
		if err := outputs[i].write(func(w io.Writer) error {
			_, err := w.Write(f.Data)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
