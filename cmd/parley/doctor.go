package main

import "github.com/spf13/cobra"

func coordinatorDoctorCommand() *cobra.Command { return &cobra.Command{Use: "doctor DIR"} }
func siteDoctorCommand() *cobra.Command        { return &cobra.Command{Use: "doctor DIR"} }
