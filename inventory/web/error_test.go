package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/inventory/web"
)

func TestHandler_CodeOfStatus(t *testing.T) {
	for code, want := range map[int]int{
		http.StatusForbidden: http.StatusForbidden, http.StatusOK: http.StatusBadGateway, 42: http.StatusBadGateway, 1000: http.StatusBadGateway,
	} {
		server := scripted.New("cluster authentication.k8s.io/v1 tokenreviews tokenreview TokenReview")
		server.Handle("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, code)
		})
		client := dynamic.New(scripted.Connect(t, server, nil), nil)
		pages := web.Handler(inventory.NewCache(client, nil), &web.Options{Tokens: true})
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.SetBasicAuth("any", "token")
		response := httptest.NewRecorder()
		pages.ServeHTTP(response, request)
		assert.Equal(t, want, response.Code, "%d", code)
		client.Close()
	}
}
