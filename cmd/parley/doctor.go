package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"parley/federation/doctor"
	"parley/method"
)

func coordinatorDoctorCommand() *cobra.Command {
	return doctorCommand("the coordinator", "Checks the folder, its disk and its audit log, then names, ports and certificates; while the coordinator serves\nor before it does.", doctor.Coordinator)
}

func siteDoctorCommand() *cobra.Command {
	return doctorCommand("the site", "Checks the folder, its disk, store, policy and data, then the way to the coordinator: names, proxy, ports,\ncertificates, credentials and versions; while the site serves or before it does.", doctor.Site)
}

func doctorCommand(whose, long string, examine func(context.Context, string, method.Registry, doctor.Options) doctor.Report) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor DIR",
		Short: "Look for what stands in the way of " + whose + ", and say how to mend it",
		Long:  long + "\nIt changes nothing. A line says ok, note or fail; exit code 1 if anything fails.",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) (err error) {
			r := examine(cmd.Context(), a[0], methods, doctor.Options{})
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), struct {
					OK     bool          `json:"ok"`
					Checks doctor.Report `json:"checks"`
				}{r.OK(), r})
			} else {
				err = r.Text(cmd.OutOrStdout())
			}
			if err == nil && !r.OK() {
				err = fmt.Errorf("something stands in the way of %s: see the lines that begin with fail", whose)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print {ok, checks: [{check, result, found, fix}]}")
	return cmd
}
