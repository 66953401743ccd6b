package graffl

import "parley/internal/vectors"

// SchemaPrefix implements [method.Verifier].
func (Method) SchemaPrefix() string { return VectorSchema }

// Verify implements [method.Verifier].
func (Method) Verify(file []byte, _ vectors.Opener) ([]vectors.Check, error) {
	return VerifyVectors(file)
}
