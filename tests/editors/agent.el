;;; agent.el --- Lets a test drive this Emacs  -*- lexical-binding: t; -*-

;; A line of JSON asks to evaluate a form, a line of JSON answers.  Keys that a test presses arrive where those of a
;; keyboard do, so that the command loop, its hooks and its idle timers run as for a person.

(require 'json)

;; Nothing waits for a key to be pressed, and nothing is written beside the files.
(setq inhibit-startup-screen t
      ring-bell-function #'ignore
      use-short-answers t
      use-dialog-box nil
      make-backup-files nil
      auto-save-default nil
      create-lockfiles nil
      completion-auto-help nil
      ;; Whole, for whoever reads why a test failed.
      message-log-max t)

(defun test-json (value)
  "VALUE as JSON: lists as arrays, whatever has no form of its own as it is printed."
  (cond ((stringp value) (json-serialize (substring-no-properties value)))
        ((numberp value) (json-serialize value))
        ((null value) "null")
        ((eq value t) "true")
        ((proper-list-p value) (concat "[" (mapconcat #'test-json value ",") "]"))
        (t (json-serialize (format "%S" value)))))

(defun test-answer (line)
  "Evaluate the form in LINE in the buffer that the user sees."
  (condition-case problem
      (let ((form (car (read-from-string (gethash "form" (json-parse-string line))))))
        (concat "{\"value\":" (test-json (with-current-buffer (window-buffer (selected-window)) (eval form t))) "}"))
    (error (concat "{\"error\":" (test-json (error-message-string problem)) "}"))))

(defun test-filter (process text)
  "Answer each whole line of TEXT that came from PROCESS."
  (let ((lines (split-string (concat (process-get process 'rest) text) "\n")))
    (process-put process 'rest (car (last lines)))
    (dolist (line (butlast lines))
      (process-send-string process (concat (test-answer (decode-coding-string line 'utf-8)) "\n")))))

(defun test-press (keys)
  "Press KEYS, in the notation of `kbd'."
  (setq unread-command-events
        (append unread-command-events (mapcar (lambda (key) (cons t key)) (listify-key-sequence (kbd keys))))))

(make-network-process :name "test" :server t :family 'local :service (getenv "CALOMEL_TEST_SOCKET")
                      :filter #'test-filter :coding 'binary :noquery t)

;;; agent.el ends here
