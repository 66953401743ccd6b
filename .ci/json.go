//go:build ignore

// Command json checks that files are JSON: one value each, or one in each line
// where the name ends in .jsonl.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

func main() {
	for _, name := range os.Args[1:] {
		data, err := os.ReadFile(name)
		values := [][]byte{data}
		if strings.HasSuffix(name, ".jsonl") {
			values = bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
		}
		for i, v := range values {
			if err == nil && !json.Valid(v) {
				err = fmt.Errorf("value %d is not JSON", i+1)
			}
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
	}
}
