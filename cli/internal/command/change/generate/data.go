package generate

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/unstructured"
)

// dataSources are the data flags of ConfigMaps and Secrets.
type dataSources struct {
	files, literals, envFiles []string
}

func (s *dataSources) addFlags(fs *pflag.FlagSet, noun string) {
	fs.StringSliceVar(&s.files, "from-file", nil, "Key file can be specified using its file path, in which case file basename will be used as key, or optionally with a key and file path. Specifying a directory will iterate each named file in the directory whose basename is a valid key.")
	fs.StringArrayVar(&s.literals, "from-literal", nil, "Specify a key and literal value to insert in "+noun+" (i.e. mykey=somevalue)")
	fs.StringSliceVar(&s.envFiles, "from-env-file", nil, "Specify the path to a file to read lines of key=val pairs to create a "+noun+".")
}

// read calls add for each key and value.
func (s *dataSources) read(add func(key string, value []byte) error) error {
	if len(s.envFiles) > 0 && len(s.files)+len(s.literals) > 0 {
		return errors.New("from-env-file cannot be combined with from-file or from-literal")
	}
	for _, source := range s.files {
		if err := readFileSource(source, add); err != nil {
			return err
		}
	}
	for _, source := range s.literals {
		key, value, found := strings.Cut(source, "=")
		if !found || key == "" {
			return fmt.Errorf("invalid literal source %v, expected key=value", source)
		}
		if err := add(key, []byte(value)); err != nil {
			return err
		}
	}
	for _, file := range s.envFiles {
		if err := readEnvFile(file, add); err != nil {
			return err
		}
	}
	return nil
}

// splitFileSource parses [KEY=]PATH. The default key is the base name of the path.
func splitFileSource(source string) (key, file string, err error) {
	key, file, found := strings.Cut(source, "=")
	switch {
	case !found:
		return path.Base(filepath.ToSlash(source)), source, nil
	case strings.Contains(file, "="):
		return "", "", errors.New("key names or file paths cannot contain '='")
	case key == "":
		return "", "", fmt.Errorf("key name for file path %v missing", file)
	case file == "":
		return "", "", fmt.Errorf("file path for key name %v missing", key)
	}
	return key, file, nil
}

func readFileSource(source string, add func(string, []byte) error) error {
	key, file, err := splitFileSource(source)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return readError(file, err)
	}
	if !info.IsDir() {
		return addFile(key, file, add)
	}
	if strings.Contains(source, "=") {
		return errors.New("cannot give a key name for a directory path")
	}
	entries, err := os.ReadDir(file)
	if err != nil {
		return fmt.Errorf("error listing files in %s: %w", file, err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		if err := addFile(entry.Name(), filepath.Join(file, entry.Name()), add); err != nil {
			return err
		}
	}
	return nil
}

func readError(file string, err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return fmt.Errorf("error reading %s: %w", file, err)
}

func addFile(key, file string, add func(string, []byte) error) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return add(key, data)
}

// readEnvFile adds the lines KEY=VALUE of a file. A line KEY takes its value from the environment.
func readEnvFile(file string, add func(string, []byte) error) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return readError(file, err)
	}
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimLeftFunc(lines.Text(), unicode.IsSpace)
		if !utf8.ValidString(line) {
			return fmt.Errorf("env file %s contains invalid utf8 bytes at line %d", file, n)
		}
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, hasValue := strings.Cut(line, "=")
		if problems := validation.IsEnvVarName(key); len(problems) > 0 {
			return fmt.Errorf("%q is not a valid key name: %s", key, strings.Join(problems, ";"))
		}
		if !hasValue {
			value = os.Getenv(key)
		}
		if err := add(key, []byte(value)); err != nil {
			return err
		}
	}
	return lines.Err()
}

func configMap() *Generator {
	var sources dataSources
	return &Generator{
		Use: "configmap NAME [--from-file=[key=]source] [--from-literal=key1=value1]", Short: "Create a config map from a local file, directory or literal value", Aliases: []string{"cm"},
		Failure: "failed to create configmap: ", HasData: true,
		AddFlags: func(fs *pflag.FlagSet) { sources.addFlags(fs, "configmap") },
		Generate: simple(func(name string) (*unstructured.Object, error) {
			text := object{}
			binary := object{}
			err := sources.read(func(key string, value []byte) error {
				if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
					return fmt.Errorf("%q is not a valid key name for a ConfigMap: %s", key, strings.Join(problems, ","))
				}
				if text[key] != nil || binary[key] != nil {
					return fmt.Errorf("cannot add key %q, another key by that name already exists in Data for ConfigMap %q", key, name)
				}
				if utf8.Valid(value) {
					text[key] = string(value)
				} else {
					binary[key] = base64.StdEncoding.EncodeToString(value)
				}
				return nil
			})
			fields := object{}
			if len(text) > 0 {
				fields["data"] = text
			}
			if len(binary) > 0 {
				fields["binaryData"] = binary
			}
			return newObject("v1", "ConfigMap", name, fields), err
		}),
	}
}
