package kubeconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// Read parses the kubeconfig file at path and notes it as the origin of each entry. An error names the file and never
// quotes its contents; errors.As finds a [ParseError] in it where the file is not a kubeconfig.
func Read(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	origin, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("%s: find the folder its file names are relative to: %w", path, err)
	}
	file, err := Parse(data, filepath.Dir(origin))
	if err != nil {
		return nil, inFile(err, path)
	}
	file.setOrigin(origin)
	return file, nil
}

// Parse reads a kubeconfig document, YAML or JSON; relative file names in it are taken from dir, and stay as they are
// where dir is "". As in kubectl unknown fields are ignored, case matters, and of several YAML documents the first
// counts. Empty data is an empty File. An error is a [*ParseError].
func Parse(data []byte, dir string) (*File, error) {
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, notYAML(data, err)
	}
	d := &decoding{yaml: data}
	file, err := d.file(asJSON)
	if err != nil {
		return nil, err
	}
	file.resolvePaths(dir)
	return file, nil
}

func (d *decoding) file(asJSON []byte) (*File, error) {
	var top struct {
		APIVersion     string          `json:"apiVersion"`
		Kind           string          `json:"kind"`
		CurrentContext string          `json:"current-context"`
		Preferences    Preferences     `json:"preferences"`
		Extensions     Extensions      `json:"extensions"`
		Clusters       json.RawMessage `json:"clusters"`
		Users          json.RawMessage `json:"users"`
		Contexts       json.RawMessage `json:"contexts"`
	}
	if err := d.decode(asJSON, &top, "", nil); err != nil {
		return nil, err
	}
	if top.Kind != "" && top.Kind != "Config" {
		return nil, d.wrong(fmt.Sprintf("its kind is %q, not \"Config\"", top.Kind), "kind")
	}
	if top.APIVersion != "" && top.APIVersion != "v1" {
		return nil, d.wrong(fmt.Sprintf("its apiVersion is %q: \"v1\" is the only one", top.APIVersion), "apiVersion")
	}
	file := &File{CurrentContext: top.CurrentContext, Preferences: top.Preferences, Extensions: top.Extensions}
	var failed [3]error
	file.Clusters, failed[0] = decodeList[Cluster](d, top.Clusters, "clusters", "cluster")
	file.Users, failed[1] = decodeList[User](d, top.Users, "users", "user")
	file.Contexts, failed[2] = decodeList[Context](d, top.Contexts, "contexts", "context")
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return file, nil
}

// decodeList reads one of the file's three lists; what is the field that holds an entry's body, and what it is called.
func decodeList[T any](d *decoding, raw json.RawMessage, list, what string) (map[string]T, error) {
	var entries []map[string]json.RawMessage
	if len(raw) > 0 {
		if err := d.decode(raw, &entries, "", path{list}); err != nil {
			return nil, err
		}
	}
	named := make(map[string]T, len(entries))
	for i, entry := range entries {
		var name string
		if raw, ok := entry["name"]; ok {
			if err := d.decode(raw, &name, fmt.Sprintf("entry %d of %s", i+1, list), path{list, i, "name"}); err != nil {
				return nil, err
			}
		}
		if _, taken := named[name]; taken {
			return nil, d.wrong(fmt.Sprintf("a second entry of %s is named %q, and kubectl accepts neither: "+
				"rename or delete one", list, name), list, i, "name")
		}
		var body T
		if raw, ok := entry[what]; ok {
			if err := d.decode(raw, &body, fmt.Sprintf("%s %q", what, name), path{list, i, what}); err != nil {
				return nil, err
			}
		}
		named[name] = body
	}
	return named, nil
}

func (f *File) resolvePaths(dir string) {
	if dir == "" {
		return // joined to nothing, ./login would become login, which is looked up in PATH
	}
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
		// A bare name is looked up in PATH when the program is run.
		if user.Exec != nil && strings.ContainsAny(user.Exec.Command, "/"+string(filepath.Separator)) {
			absolute(&user.Exec.Command)
		}
		f.Users[name] = user
	}
}

func (f *File) setOrigin(path string) {
	for name, cluster := range f.Clusters {
		cluster.Origin = path
		f.Clusters[name] = cluster
	}
	for name, user := range f.Users {
		user.Origin = path
		f.Users[name] = user
	}
	for name, context := range f.Contexts {
		context.Origin = path
		f.Contexts[name] = context
	}
}

// inFile adds the file's name to an error of Parse.
func inFile(err error, path string) error {
	if wrong := (*ParseError)(nil); errors.As(err, &wrong) {
		wrong.Path = path
		return wrong
	}
	return fmt.Errorf("%s: %w", path, err)
}
