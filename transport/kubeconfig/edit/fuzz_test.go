package edit_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

// FuzzDocument checks that a file that is encoded and parsed again is the same, and that a document that is parsed and
// encoded again loses nothing, known or unknown.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"Config","users":[{"name":"a","user":null},null]}`,
		`{current-context: x, clusters: [{name: c, cluster: {server: https://c, certificate-authority-data: Y2E=}}],
users: [{name: u, user: {token: t, as-user-extra: {a: [b]}, exec: {command: l, env: [{name: A, value: "1"}]}, extensions: [{name: e, extension: {x: [1]}}]}}]}`,
		"a: &x {b: c}\nusers:\n- name: u\n  user: *x\n- <<: *x\n",
		"# c\n? a\n: b # d\n\n#e\n---\nf",
		"contexts: [{name: \"a\\tb\\u0085\", context: {namespace: 0x1f}}]\ncurrent-context: |\n  a\n\n",
		"users: [{name: a, user: {password: *x}}]", "a: [", "\ufeffkind: Config\r\n", "{\"a\": 1e400, \"b\": 123456789012345678901234567890}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := kubeconfig.Parse(data, "/dir"); err == nil {
			checkPut(t, file)
			checkBytes(t, data)
		}
	})
}

func checkPut(t *testing.T, file *kubeconfig.File) {
	d, err := edit.Parse(nil, "")
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

// encoded returns all fields, with secrets; nil and empty lists are equal in it.
func encoded(t *testing.T, file *kubeconfig.File) string {
	var all strings.Builder
	for _, value := range []any{file.CurrentContext, file.Clusters, file.Users, file.Contexts, file.Preferences, file.Extensions} {
		out, err := edit.EncodeYAML(value)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(out)
	}
	return all.String()
}

func checkBytes(t *testing.T, data []byte) {
	d, err := edit.Parse(data, "")
	if err != nil {
		return // rejected: several documents, or YAML that only kubectl's parser accepts
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
