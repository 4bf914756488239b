package resource_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/resource"
)

// A loop that ends without an error has handled all objects.
func TestFinder_FilesAfterContextEnded(t *testing.T) {
	const files = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n"
	for last, want := range map[string]error{"one": context.Canceled, "two": nil} {
		t.Run(last, func(t *testing.T) {
			finder := &resource.Finder{Local: true, Connection: flags.NewConnection()}
			finder.Files.Paths = []string{"-"}
			finder.Files.In = strings.NewReader(files)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var names []string
			var failed error
			for info, err := range finder.Objects(ctx, nil, false) {
				if err != nil {
					require.NoError(t, failed)
					failed = err
					continue
				}
				if names = append(names, info.Name); info.Name == last {
					cancel()
				}
			}
			require.ErrorIs(t, failed, want)
			assert.Equal(t, last, names[len(names)-1])
		})
	}
}
