package coordinator

// Roots are the certificates, as PEM, that sites hold the broker's against; empty
// for those that the system trusts.
func (f *Folder) Roots() []byte { return f.roots() }
