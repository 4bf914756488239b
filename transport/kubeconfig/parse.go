package kubeconfig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// ParseError reports the position and the reason of an invalid kubeconfig. It quotes names but no values, because values may be
// secrets.
type ParseError struct {
	// Path is the file's name, or "" if the document was not read from a file.
	Path string
	// Line and Column are the position of the wrong value, counted from 1; 0 means unknown. For broken YAML, Line is the parser's
	// position. It may be the line after the mistake.
	Line, Column int
	// Problem is the cause, with advice.
	Problem string
}

// Error returns "path:line:column: not a kubeconfig: problem", in the form of compilers and editors.
func (e *ParseError) Error() string {
	lineFormat := ":%d"
	columnFormat := ":%d"
	if e.Path == "" {
		lineFormat = "line %d"
		columnFormat = ", column %d"
	}
	position := e.Path
	if e.Line > 0 {
		position += fmt.Sprintf(lineFormat, e.Line)
		if e.Column > 0 {
			position += fmt.Sprintf(columnFormat, e.Column)
		}
	}
	if position != "" {
		position += ": "
	}
	return position + "not a kubeconfig: " + e.Problem
}

// Read parses the kubeconfig file at path and sets each entry's Origin. Errors name the file and quote none of its values. The
// error for an invalid kubeconfig is a [*ParseError].
func Read(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	origin, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: resolve its folder: %w", path, err)
	}
	file, err := parse(data, filepath.Dir(origin), origin)
	if parseError, ok := errors.AsType[*ParseError](err); ok {
		parseError.Path = path
	}
	return file, err
}

// Parse decodes a kubeconfig document, YAML or JSON. Relative file names in it are resolved against dir, or kept if dir
// is "". As in kubectl, unknown fields are ignored, field names are case-sensitive, and only the first of several YAML
// documents is read. Empty data is an empty File. An error is a [*ParseError].
func Parse(data []byte, dir string) (*File, error) { return parse(data, dir, "") }

func parse(data []byte, dir, origin string) (*File, error) {
	d := &decoder{data: data}
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, d.conversionError()
	}
	file, err := d.decodeFile(asJSON)
	if err != nil {
		return nil, err
	}
	file.locate(dir, origin)
	return file, nil
}

func (d *decoder) decodeFile(asJSON []byte) (*File, error) {
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
		return nil, d.errorAt(fmt.Sprintf("its kind is %q, not \"Config\"", top.Kind), "kind")
	}
	if top.APIVersion != "" && top.APIVersion != "v1" {
		return nil, d.errorAt(fmt.Sprintf("its apiVersion is %q, not \"v1\"", top.APIVersion), "apiVersion")
	}
	file := &File{CurrentContext: top.CurrentContext, Preferences: top.Preferences, Extensions: top.Extensions}
	var err error
	if file.Clusters, err = decodeEntries[Cluster](d, top.Clusters, "cluster"); err != nil {
		return nil, err
	}
	if file.Users, err = decodeEntries[User](d, top.Users, "user"); err != nil {
		return nil, err
	}
	if file.Contexts, err = decodeEntries[Context](d, top.Contexts, "context"); err != nil {
		return nil, err
	}
	return file, nil
}

// decodeEntries decodes a list of the file. An entry has a name, and its body in the field called kind.
func decodeEntries[T any](d *decoder, raw json.RawMessage, kind string) (map[string]T, error) {
	list := kind + "s"
	var entries []map[string]json.RawMessage
	if err := d.decode(raw, &entries, "", path{list}); err != nil {
		return nil, err
	}
	byName := make(map[string]T, len(entries))
	for i, entry := range entries {
		var name string
		if err := d.decode(entry["name"], &name, fmt.Sprintf("entry %d of %s: ", i+1, list), path{list, i, "name"}); err != nil {
			return nil, err
		}
		if _, exists := byName[name]; exists {
			return nil, d.errorAt(fmt.Sprintf("a second entry of %s is named %q, and kubectl accepts neither "+
				"(rename or delete one)", list, name), list, i, "name")
		}
		var body T
		if err := d.decode(entry[kind], &body, fmt.Sprintf("%s %q: ", kind, name), path{list, i, kind}); err != nil {
			return nil, err
		}
		byName[name] = body
	}
	return byName, nil
}

// locate resolves relative file names against dir unless dir is "", and sets the entries' Origin.
func (f *File) locate(dir, origin string) {
	resolve := func(path *string) {
		// With an empty dir, Join would turn ./login into login, a name to look up in PATH.
		if dir != "" && *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
	for name, cluster := range f.Clusters {
		resolve(&cluster.CertificateAuthority)
		cluster.Origin = origin
		f.Clusters[name] = cluster
	}
	for name, user := range f.Users {
		resolve(&user.ClientCertificate)
		resolve(&user.ClientKey)
		resolve(&user.TokenFile)
		// A bare name is looked up in PATH at run time.
		if user.Exec != nil && strings.ContainsAny(user.Exec.Command, "/"+string(filepath.Separator)) {
			resolve(&user.Exec.Command)
		}
		user.Origin = origin
		f.Users[name] = user
	}
	for name, context := range f.Contexts {
		context.Origin = origin
		f.Contexts[name] = context
	}
}

// Merge joins files like kubectl joins the KUBECONFIG list: each named entry, and the current context, is taken whole from the
// first file with it. The inputs are not changed; nil inputs are skipped.
func Merge(files ...*File) *File {
	merged := &File{
		Clusters:    map[string]Cluster{},
		Users:       map[string]User{},
		Contexts:    map[string]Context{},
		Extensions:  Extensions{},
		Preferences: Preferences{Extensions: Extensions{}},
	}
	for _, file := range slices.Backward(files) { // the first file wins
		if file == nil {
			continue
		}
		merged.CurrentContext = cmp.Or(file.CurrentContext, merged.CurrentContext)
		maps.Copy(merged.Clusters, file.Clusters)
		maps.Copy(merged.Users, file.Users)
		maps.Copy(merged.Contexts, file.Contexts)
		maps.Copy(merged.Extensions, file.Extensions)
		maps.Copy(merged.Preferences.Extensions, file.Preferences.Extensions)
		merged.Preferences.Colors = merged.Preferences.Colors || file.Preferences.Colors
	}
	return merged
}
