package execplugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/transport/internal/credential"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// execCredential is the ExecCredential printed by the program.
type execCredential struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Status     *struct {
		ExpirationTimestamp   *string `json:"expirationTimestamp"`
		Token                 string  `json:"token"`
		ClientCertificateData string  `json:"clientCertificateData"`
		ClientKeyData         string  `json:"clientKeyData"`
	} `json:"status"`
}

// parseOutput validates and converts the program's output. Errors do not show the output: decoder errors may quote it and are not
// wrapped.
func parseOutput(data []byte, apiVersion string) (*credential.Credential, error) {
	output, err := decodeOutput(data, apiVersion)
	if err != nil {
		return nil, err
	}
	status := output.Status
	parsed := &credential.Credential{}
	if parsed.Authorization, err = credential.Bearer(status.Token); err != nil {
		return nil, err
	}
	if (status.ClientCertificateData == "") != (status.ClientKeyData == "") {
		return nil, errors.New("it printed only one of clientCertificateData and clientKeyData: they need each other")
	}
	certificate := []byte(status.ClientCertificateData)
	key := []byte(status.ClientKeyData)
	if parsed.Certificate, err = credential.ParsePair(certificate, key); err != nil {
		return nil, errors.New("the client certificate and key that it printed are no PEM pair that belongs together")
	}
	if parsed.Authorization == "" && parsed.Certificate == nil {
		return nil, errors.New("it printed neither a token nor a client certificate (you may have to log in first)")
	}
	if status.ExpirationTimestamp != nil {
		if parsed.Expires, err = time.Parse(time.RFC3339, *status.ExpirationTimestamp); err != nil {
			return nil, errors.New("it printed an expirationTimestamp that is no RFC 3339 time like 2006-01-02T15:04:05Z")
		}
	}
	if c := parsed.Certificate; c != nil && c.Leaf != nil && (parsed.Expires.IsZero() || c.Leaf.NotAfter.Before(parsed.Expires)) {
		parsed.Expires = c.Leaf.NotAfter
	}
	return parsed, nil
}

// decodeOutput decodes JSON, or YAML like kubectl, and checks its type.
func decodeOutput(data []byte, apiVersion string) (*execCredential, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, errors.New("it printed nothing (see its standard error, or run it by hand)")
	}
	var err error
	if data[0] != '{' {
		data, err = yaml.YAMLToJSON(data)
	}
	output := &execCredential{}
	if err == nil {
		err = json.Unmarshal(data, output)
	}
	switch {
	case err != nil:
		return nil, errors.New("its output is no ExecCredential in JSON (run it by hand to see it; " +
			"messages for people belong on standard error)")
	case output.Kind != "ExecCredential":
		return nil, errors.New("it printed an object of another kind than ExecCredential " +
			"(is the command the one that its documentation gives for kubeconfigs?)")
	case output.APIVersion != apiVersion:
		return nil, versionError(output.APIVersion, apiVersion)
	case output.Status == nil:
		return nil, errors.New("it printed an ExecCredential without a status: there is no credential in it")
	}
	return output, nil
}

func versionError(got, want string) error {
	switch got {
	case kubeconfig.ExecV1, kubeconfig.ExecV1Beta1, "client.authentication.k8s.io/v1alpha1":
		return fmt.Errorf("it printed apiVersion %s, and the kubeconfig requests %s (make the kubeconfig's apiVersion the plugin's, "+
			"or update the plugin)", got, want)
	default:
		return fmt.Errorf("it printed a different apiVersion than the kubeconfig's %s (update the plugin)", want)
	}
}
