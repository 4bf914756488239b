package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParsePort_Range(t *testing.T) {
	for port, want := range map[string]string{
		"1": "", "80": "", "65535": "", "http": "", "8080-http": "",
		"0": "out of range", "-1": "out of range", "65536": "out of range", "99999999999999999999": "out of range", "": "empty",
	} {
		_, _, err := parsePort(port)
		if want == "" {
			assert.NoError(t, err, port)
			continue
		}
		require.ErrorContains(t, err, want, port)
	}
	_, _, err := parsePort("70000")
	require.EqualError(t, err, "port 70000 is out of range: ports are numbers from 1 to 65535")
}

// decoded decodes a part of an object.
func decoded[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	require.NoError(t, json.Unmarshal([]byte(text), into))
	return into
}

const podWithPorts = `{"metadata": {"name": "web-0"}, "spec": {
	"containers": [{"ports": [{"name": "http", "containerPort": 8080}, {"name": "dns", "containerPort": 53, "protocol": "UDP"}]},
		{"ports": [{"containerPort": 9000, "protocol": "UDP"}, {"containerPort": 9000, "protocol": "TCP"}]}],
	"initContainers": [{"ports": [{"name": "admin", "containerPort": 15000, "protocol": "TCP"}]}]}}`

func TestPod_NamedPort(t *testing.T) {
	web := decoded[pod](t, podWithPorts)
	for name, want := range map[string]uint16{"http": 8080, "admin": 15000} {
		number, err := web.namedPort(name)
		require.NoError(t, err)
		assert.Equal(t, want, number)
	}
	_, err := web.namedPort("dns")
	require.EqualError(t, err, "port dns of pod web-0 is UDP: only TCP can be forwarded")
	both := decoded[pod](t, `{"spec": {"containers": [{"ports": [{"name": "dns", "containerPort": 53, "protocol": "UDP"}]},
		{"ports": [{"name": "dns", "containerPort": 5353}]}]}}`)
	number, err := both.namedPort("dns")
	require.NoError(t, err, "names are unique within a container only")
	assert.Equal(t, uint16(5353), number)
	_, err = web.namedPort("echo")
	require.EqualError(t, err, `pod web-0 has no port named "echo": its ports are 8080 (http), 53/UDP (dns), 15000 (admin)`)
	_, err = new(pod).namedPort("echo")
	require.ErrorContains(t, err, "none of its ports has a name")
}

func TestPod_CheckProtocol(t *testing.T) {
	web := decoded[pod](t, podWithPorts)
	for _, number := range []uint16{8080, 9000, 15000, 4711} {
		assert.NoError(t, web.checkProtocol(number), number)
	}
	require.EqualError(t, web.checkProtocol(53), "port 53 of pod web-0 is UDP: only TCP can be forwarded")
}

func TestPodOwner_PodPort(t *testing.T) {
	web := decoded[pod](t, podWithPorts)
	ref := &objectRef{resource: "services", name: "web"}
	service := decoded[podOwner](t, `{"spec": {"ports": [
		{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "targetPort": 5353},
		{"name": "web", "port": 80, "targetPort": "http"}, {"name": "plain", "port": 81}, {"name": "log", "port": 514, "protocol": "UDP"},
		{"port": 8443, "targetPort": 443}]}}`)
	for port, want := range map[string]uint16{
		"53": 5353, "dns-tcp": 5353, "80": 8080, "web": 8080, "81": 81, "plain": 81, "8443": 443,
		"http": 8080, "5353": 5353, "443": 443, // by the target port
	} {
		number, err := service.podPort(ref, port, web)
		require.NoError(t, err, port)
		assert.Equal(t, want, number, port)
	}
	for port, want := range map[string]string{
		"dns": "port dns of services/web is UDP: only TCP can be forwarded",
		"514": "port 514 of services/web is UDP: only TCP can be forwarded",
		"echo": "services/web has no port echo: its ports are 53/UDP (dns), 53 (dns-tcp) to 5353, 80 (web) to http, " +
			"81 (plain), 514/UDP (log), 8443 to 443",
	} {
		_, err := service.podPort(ref, port, web)
		require.EqualError(t, err, want)
	}
	headless := decoded[podOwner](t, `{"spec": {"clusterIP": "None", "ports": [{"name": "web", "port": 80, "targetPort": "http"}]}}`)
	for port, want := range map[string]uint16{"80": 80, "web": 80, "http": 8080} {
		number, err := headless.podPort(ref, port, web)
		require.NoError(t, err, port)
		assert.Equal(t, want, number, port)
	}
	_, err := new(podOwner).podPort(ref, "80", web)
	require.EqualError(t, err, "services/web has no port 80: it has none")
}

func TestPodOwner_PortListIsShort(t *testing.T) {
	var many podOwner
	for i := range 10_000 {
		many.Spec.Ports = append(many.Spec.Ports, servicePort{Name: fmt.Sprint("port-\x1b[2J", i), Port: 1})
	}
	_, err := many.podPort(&objectRef{resource: "services", name: "web"}, "80", new(pod))
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 500)
	assert.False(t, strings.ContainsRune(err.Error(), '\x1b'))
}
