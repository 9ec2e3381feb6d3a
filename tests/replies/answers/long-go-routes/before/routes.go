package api

import (
	"encoding/json"
	"net/http"
)

func getUser(w http.ResponseWriter, r *http.Request) {
	v, err := db.Get("User", r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

func deleteUser(w http.ResponseWriter, r *http.Request) {
	if err := db.Delete("User", r.PathValue("id")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.Write([]byte(`{"deleted": "User"}` + "\n"))
}

func getOrder(w http.ResponseWriter, r *http.Request) {
	v, err := db.Get("Order", r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

func deleteOrder(w http.ResponseWriter, r *http.Request) {
	if err := db.Delete("Order", r.PathValue("id")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.Write([]byte(`{"deleted": "Order"}` + "\n"))
}

func getItem(w http.ResponseWriter, r *http.Request) {
	v, err := db.Get("Item", r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

func deleteItem(w http.ResponseWriter, r *http.Request) {
	if err := db.Delete("Item", r.PathValue("id")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.Write([]byte(`{"deleted": "Item"}` + "\n"))
}

func getTag(w http.ResponseWriter, r *http.Request) {
	v, err := db.Get("Tag", r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

func deleteTag(w http.ResponseWriter, r *http.Request) {
	if err := db.Delete("Tag", r.PathValue("id")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.Write([]byte(`{"deleted": "Tag"}` + "\n"))
}

func getTeam(w http.ResponseWriter, r *http.Request) {
	v, err := db.Get("Team", r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

func deleteTeam(w http.ResponseWriter, r *http.Request) {
	if err := db.Delete("Team", r.PathValue("id")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.Write([]byte(`{"deleted": "Team"}` + "\n"))
}

func getNote(w http.ResponseWriter, r *http.Request) {
	v, err := db.Get("Note", r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

func deleteNote(w http.ResponseWriter, r *http.Request) {
	if err := db.Delete("Note", r.PathValue("id")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.Write([]byte(`{"deleted": "Note"}` + "\n"))
}

func getFile(w http.ResponseWriter, r *http.Request) {
	v, err := db.Get("File", r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

func deleteFile(w http.ResponseWriter, r *http.Request) {
	if err := db.Delete("File", r.PathValue("id")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.Write([]byte(`{"deleted": "File"}` + "\n"))
}

func getTask(w http.ResponseWriter, r *http.Request) {
	v, err := db.Get("Task", r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

func deleteTask(w http.ResponseWriter, r *http.Request) {
	if err := db.Delete("Task", r.PathValue("id")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.Write([]byte(`{"deleted": "Task"}` + "\n"))
}
