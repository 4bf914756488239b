package kubeconfig

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// document is the file's own shape: lists of named entries, with fields this package does not know left alone.
type document struct {
	Kind           string                `json:"kind"`
	CurrentContext string                `json:"current-context"`
	Clusters       []namedEntry[Cluster] `json:"clusters"`
	Users          []namedEntry[User]    `json:"users"`
	Contexts       []namedEntry[Context] `json:"contexts"`
}

// namedEntry is one element of the file's lists; exactly one of the three bodies belongs to each list.
type namedEntry[T any] struct {
	Name string
	Body T
}

// UnmarshalJSON reads the name, and the body from whichever of cluster, user and context is there.
func (e *namedEntry[T]) UnmarshalJSON(data []byte) error {
	var raw struct {
		Name    string          `json:"name"`
		Cluster json.RawMessage `json:"cluster"`
		User    json.RawMessage `json:"user"`
		Context json.RawMessage `json:"context"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	e.Name = raw.Name
	for _, body := range []json.RawMessage{raw.Cluster, raw.User, raw.Context} {
		if len(body) == 0 {
			continue
		}
		if err := json.Unmarshal(body, &e.Body); err != nil {
			// %v, not %w: Parse must not unwrap this one a second time and lose the entry's name.
			return fmt.Errorf("entry %q: %v", e.Name, withoutValue(err)) //nolint:errorlint // see above
		}
	}
	return nil
}

// Read parses the kubeconfig file at path. An error names the file and never quotes its contents.
func Read(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := Parse(data, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// Parse reads a kubeconfig document, YAML or JSON; relative file names in it are taken from dir. Unknown fields are
// ignored. Of entries that share a name the first wins, as in kubectl. Empty data is an empty File.
func Parse(data []byte, dir string) (*File, error) {
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("not a kubeconfig: %w", err)
	}
	var doc document
	if err := json.Unmarshal(asJSON, &doc); err != nil {
		return nil, fmt.Errorf("not a kubeconfig: %w", withoutValue(err))
	}
	if doc.Kind != "" && doc.Kind != "Config" {
		return nil, fmt.Errorf("not a kubeconfig: its kind is %q, not \"Config\"", doc.Kind)
	}
	file := &File{
		CurrentContext: doc.CurrentContext,
		Clusters:       byName(doc.Clusters),
		Users:          byName(doc.Users),
		Contexts:       byName(doc.Contexts),
	}
	file.resolvePaths(dir)
	return file, nil
}

func byName[T any](entries []namedEntry[T]) map[string]T {
	named := make(map[string]T, len(entries))
	for _, entry := range entries {
		if _, taken := named[entry.Name]; !taken {
			named[entry.Name] = entry.Body
		}
	}
	return named
}

func (f *File) resolvePaths(dir string) {
	absolute := func(path *string) {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
	for name, cluster := range f.Clusters {
		absolute(&cluster.CertificateAuthority)
		f.Clusters[name] = cluster
	}
	for name, user := range f.Users {
		absolute(&user.ClientCertificate)
		absolute(&user.ClientKey)
		absolute(&user.TokenFile)
		f.Users[name] = user
	}
}

// withoutValue keeps where a decoder stopped but not the value it quotes, which may be a password or a key.
func withoutValue(err error) error {
	var wrongType *json.UnmarshalTypeError
	var badBase64 base64.CorruptInputError
	switch {
	case errors.As(err, &wrongType):
		return fmt.Errorf("field %q does not hold a %s", wrongType.Field, wrongType.Type)
	case errors.As(err, &badBase64):
		return fmt.Errorf("a field whose name ends in -data is not base64: %w", badBase64)
	default:
		return err
	}
}
