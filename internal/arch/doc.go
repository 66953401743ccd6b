// Package arch holds no code: its tests hold the source to the design in
// docs/architecture.md, where the compiler cannot.
package arch
