package kubeconfig_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/transport/kubeconfig"
	"sigs.k8s.io/yaml"
)

// FuzzParse holds for any bytes: no panic; an error has its place within the document; what was read survives being
// written; and a document that is rewritten loses nothing, known or not.
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
			checkPlace(t, data, err)
			return
		}
		_ = fmt.Sprintf("%#v", file)
		if resolved, err := kubeconfig.Merge(file, file).Resolve(nil); err == nil && resolved.Cluster.Server == "" {
			t.Fatal("resolved to a cluster without a server")
		}
		checkWritten(t, file)
		checkRewritten(t, data)
	})
}

func checkPlace(t *testing.T, data []byte, err error) {
	var wrong *kubeconfig.ParseError
	if !errors.As(err, &wrong) {
		t.Fatalf("another error: %v", err)
	}
	if lines := strings.Count(strings.ReplaceAll(string(data), "\r", "\n"), "\n") + strings.Count(string(data), "\u0085") +
		strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029") + 2; wrong.Line < 0 || wrong.Line > lines {
		t.Fatalf("line %d of %d: %v", wrong.Line, lines, err)
	}
}

func checkWritten(t *testing.T, file *kubeconfig.File) {
	d, err := kubeconfig.ParseDocument(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Put(file); err != nil {
		t.Fatal(err)
	}
	out, err := d.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	again, err := kubeconfig.Parse(out, "/dir")
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if was, is := encoded(t, file), encoded(t, again); was != is {
		t.Fatalf("%s\nbecame\n%s\nthrough\n%s", was, is, out)
	}
}

// encoded shows all fields, secrets too; nil and empty lists are the same in it.
func encoded(t *testing.T, file *kubeconfig.File) string {
	out, err := kubeconfig.RevealedJSON(*file)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func checkRewritten(t *testing.T, data []byte) {
	d, err := kubeconfig.ParseDocument(data, "")
	if err != nil {
		return // refused and so not lost: several documents, YAML that only kubectl's parser takes
	}
	out, err := d.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	was, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	is, err := yaml.YAMLToJSON(out)
	if err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if string(was) != string(is) && strings.TrimSpace(string(was)) != "null" {
		t.Fatalf("%s\nbecame\n%s\nthrough %q", was, is, out)
	}
}
