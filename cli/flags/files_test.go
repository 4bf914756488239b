package flags_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/unstructured/manifest"
)

func TestFiles_AddFlags(t *testing.T) {
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for _, c := range []struct {
		args      []string
		want      []string
		recursive bool
		err       string
	}{
		{nil, nil, false, ""},
		{[]string{"-f", "-"}, []string{"-"}, false, ""},
		{[]string{"-f", "a.yaml,b", "--filename", "c", "-R"}, []string{"a.yaml", "b", "c"}, true, `the path "a.yaml" does not exist`},
		{[]string{"-f", "-,-"}, []string{"-", "-"}, false, "standard input cannot be used for multiple arguments"},
		{[]string{"-k", "base"}, nil, false, "-k is not supported (run: kustomize build base | … -f -)"},
	} {
		files := &flags.Files{Reader: manifest.Reader{In: strings.NewReader(configMap)}}
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		files.AddFlags(fs, "to read")
		require.NoError(t, fs.Parse(c.args))
		assert.Equal(t, c.want, files.Paths, "%q", c.args)
		assert.Equal(t, c.recursive, files.Recursive, "%q", c.args)
		assert.Equal(t, c.args == nil, files.IsEmpty(), "%q", c.args)
		objects, err := files.Read(t.Context())
		if c.err != "" {
			assert.ErrorContains(t, err, c.err, "%q", c.args)
			continue
		}
		require.NoError(t, err, "%q", c.args)
		assert.Len(t, objects, len(c.want), "%q", c.args)
	}
}
