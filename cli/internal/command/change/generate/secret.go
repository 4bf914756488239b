package generate

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/unstructured"
)

// newSecret returns a secret with the data of sources.
func newSecret(name, secretType string, sources *dataSources) (*unstructured.Object, error) {
	data := object{}
	err := sources.read(func(key string, value []byte) error {
		if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
			return fmt.Errorf("%q is not valid key name for a Secret %s", key, strings.Join(problems, ";"))
		}
		if data[key] != nil {
			return fmt.Errorf("cannot add key %s, another key by that name already exists", key)
		}
		data[key] = base64.StdEncoding.EncodeToString(value)
		return nil
	})
	fields := object{}
	if len(data) > 0 {
		fields["data"] = data
	}
	if secretType != "" {
		fields["type"] = secretType
	}
	return newObject("v1", "Secret", name, fields), err
}

func genericSecret() *Generator {
	var sources dataSources
	var secretType string
	return &Generator{
		Parent: "secret", Use: "generic NAME [--type=string] [--from-file=[key=]source] [--from-literal=key1=value1]",
		Short:   "Create a secret from a local file, directory, or literal value",
		Failure: "failed to create secret ", HasData: true,
		AddFlags: func(fs *pflag.FlagSet) {
			sources.addFlags(fs, "secret")
			fs.StringVar(&secretType, "type", "", "The type of secret to create")
		},
		Generate: simple(func(name string) (*unstructured.Object, error) { return newSecret(name, secretType, &sources) }),
	}
}

func tlsSecret() *Generator {
	var cert, key string
	return &Generator{
		Parent: "secret", Use: "tls NAME --cert=path/to/cert/file --key=path/to/key/file", Short: "Create a TLS secret",
		Failure: "failed to create secret ", HasData: true,
		AddFlags: func(fs *pflag.FlagSet) {
			fs.StringVar(&cert, "cert", "", "Path to PEM encoded public key certificate.")
			fs.StringVar(&key, "key", "", "Path to private key associated with given certificate.")
		},
		Generate: simple(func(name string) (*unstructured.Object, error) {
			if cert == "" || key == "" {
				return nil, errors.New("key and cert must be specified")
			}
			data := object{}
			var pair [2][]byte
			for i, file := range []string{cert, key} {
				content, err := os.ReadFile(file)
				if err != nil {
					return nil, err
				}
				pair[i] = content
				data[[]string{"tls.crt", "tls.key"}[i]] = base64.StdEncoding.EncodeToString(content)
			}
			if _, err := tls.X509KeyPair(pair[0], pair[1]); err != nil {
				return nil, err
			}
			return newObject("v1", "Secret", name, object{"type": "kubernetes.io/tls", "data": data}), nil
		}),
	}
}

const dockerConfigKey = ".dockerconfigjson"

func dockerSecret() *Generator {
	var sources dataSources
	var username, password, email, server string
	return &Generator{
		Parent: "secret", Use: "docker-registry NAME --docker-username=user --docker-password=password --docker-email=email [--docker-server=string] [--from-file=[key=]source]",
		Short:   "Create a secret for use with a Docker registry",
		Failure: "failed to create secret ", HasData: true,
		AddFlags: func(fs *pflag.FlagSet) {
			fs.StringVar(&username, "docker-username", "", "Username for Docker registry authentication")
			fs.StringVar(&password, "docker-password", "", "Password for Docker registry authentication")
			fs.StringVar(&email, "docker-email", "", "Email for Docker registry")
			fs.StringVar(&server, "docker-server", "https://index.docker.io/v1/", "Server location for Docker registry")
			fs.StringSliceVar(&sources.files, "from-file", nil, "Path of a Docker configuration, whose key is always "+dockerConfigKey+".")
		},
		Generate: simple(func(name string) (*unstructured.Object, error) {
			files := &dataSources{}
			for _, file := range sources.files {
				if !strings.Contains(file, "=") {
					file = dockerConfigKey + "=" + file
				}
				files.files = append(files.files, file)
			}
			secret, err := newSecret(name, "kubernetes.io/dockerconfigjson", files)
			if err != nil || len(files.files) > 0 {
				return secret, err
			}
			if username == "" || password == "" || server == "" {
				return nil, errors.New("either --from-file or the combination of --docker-username, --docker-password and --docker-server is required")
			}
			config, err := dockerConfig(username, password, email, server)
			secret.Object["data"] = object{dockerConfigKey: base64.StdEncoding.EncodeToString(config)}
			return secret, err
		}),
	}
}

// dockerConfig returns a Docker configuration with a single registry.
func dockerConfig(username, password, email, server string) ([]byte, error) {
	type entry struct {
		Username string `json:"username,omitempty"`
		Password string `json:"password,omitempty"` //nolint:gosec // it is written to the Secret that the user asks for
		Email    string `json:"email,omitempty"`
		Auth     string `json:"auth,omitempty"`
	}
	auth := base64.StdEncoding.EncodeToString([]byte(username + ":" + password))
	return json.Marshal(map[string]map[string]entry{"auths": {server: {username, password, email, auth}}})
}
