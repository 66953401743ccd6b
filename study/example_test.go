package study_test

import (
	"fmt"
	"os"
	"path/filepath"

	"parley/study"
)

// A plan comes from a file. Methods are those that the program knows.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(path, []byte(small), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	p, err := study.Load(path, methods{})
	if err != nil {
		fmt.Println(err) // everything that is wrong, one problem below the other
		return
	}
	digest, err := p.Digest()
	fmt.Println(p.Name, p.Sites, p.Quorum, digest.Short(), err)
	// Output: alzheimer [north centre south] 3 197381c72485 <nil>
}

// What a person sees who misspelt a key and left out another.
func ExampleParse() {
	_, err := study.Parse("plan.yaml", []byte(`parley: 1
name: alzheimer
sites: [north, south]
veiws:
  - {name: clinic, features: [age, male]}
method: {name: regression}
privacy: {protection: none}
`), methods{})
	fmt.Println(err)
	// Output:
	// plan.yaml:1:1: views: missing
	//   hint: a list of views, each with a name and its features
	// plan.yaml:4:1: veiws: unknown key
	//   hint: did you mean views?
}
