package kubeconfig_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/transport/kubeconfig"
)

// FuzzParse checks that no input panics, that an error's line is in the document, and that every type prints.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		everything,
		`{"kind":"Config","users":[{"name":"a","user":null},null]}`,
		one("server: https://c, certificate-authority-data: Y2E=", "token: t, as-user-extra: {a: [b]}"),
		"a: &x {b: c}\nusers:\n- name: u\n  user: *x\n- <<: *x\n",
		"# c\n? a\n: b # d\n\n#e\n---\nf",
		"contexts: [{name: \"a\\tb\\u0085\", context: {namespace: 0x1f}}]\ncurrent-context: |\n  a\n\n",
		"users: [{name: a, user: {password: *x}}]", "a: [", "\ufeffkind: Config\r\n", "{\"a\": 1e400, \"b\": 123456789012345678901234567890}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := kubeconfig.Parse(data, "/dir")
		if err != nil {
			checkLine(t, data, err)
			return
		}
		_ = fmt.Sprintf("%#v", file)
		if resolved, err := kubeconfig.Merge(file, file).Resolve(nil); err == nil && resolved.Cluster.Server == "" {
			t.Fatal("resolved to a cluster without a server")
		}
	})
}

func checkLine(t *testing.T, data []byte, err error) {
	var parseError *kubeconfig.ParseError
	if !errors.As(err, &parseError) {
		t.Fatalf("another error: %v", err)
	}
	if lines := strings.Count(strings.ReplaceAll(string(data), "\r", "\n"), "\n") + strings.Count(string(data), "\u0085") +
		strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029") + 2; parseError.Line < 0 || parseError.Line > lines {
		t.Fatalf("line %d of %d: %v", parseError.Line, lines, err)
	}
}
