package architecture_test

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestImports_DistinguishUnstructuredPackages keeps the name unstructured for the package of this repository.
func TestImports_DistinguishUnstructuredPackages(t *testing.T) {
	eachSource(t, func(path string) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imported := range file.Imports {
			if imported.Path.Value == `"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"` {
				assert.True(t, imported.Name != nil && imported.Name.Name == "unstructuredv1", "%s: import it as unstructuredv1", path)
			}
		}
	})
}
