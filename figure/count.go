package figure

import "fmt"

// Plural says in words how many things there are, whose name takes an s if they are not
// one: 1 site, 3 sites.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
