package com.acme;

import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * A report over rows of type {@code <T>}.
 *
 * @param <T> the row's type
 */
public final class Report<T extends Comparable<? super T>> {
    private final String title;
    private final String subtitle;
    private final LocalDate from;
    private final LocalDate to;
    private final List<T> rows;
    private final Map<String, Function<T, ?>> columns;
    private final boolean landscape;
    private final char separator;
    private final int limit;

    private Report(Builder<T> builder) {
        this.title = builder.title;
        this.subtitle = builder.subtitle;
        this.from = builder.from;
        this.to = builder.to;
        this.rows = List.copyOf(builder.rows);
        this.columns = Map.copyOf(builder.columns);
        this.landscape = builder.landscape;
        this.separator = builder.separator;
        this.limit = builder.limit;
    }

    /**
     * Starts a new report.
     *
     * @param <T> the row's type
     * @return an empty builder
     */
    public static <T extends Comparable<? super T>> Builder<T> builder() {
        return new Builder<>();
    }

    public String toCsv() {
        String head = String.join(String.valueOf(separator), columns.keySet());
        return rows.stream()
                .sorted()
                .limit(limit)
                .map(row -> columns.values().stream()
                        .map(f -> quote(String.valueOf(f.apply(row))))
                        .collect(Collectors.joining(String.valueOf(separator))))
                .collect(Collectors.joining("\r\n", head + "\r\n", "\r\n"));
    }

    private String quote(String cell) {
        return cell.indexOf(separator) < 0 && cell.indexOf('"') < 0
                ? cell
                : '"' + cell.replace("\"", "\"\"") + '"';
    }

    @Override
    public String toString() {
        return """
                Report "%s" (%s)
                  %s \u2013 %s, %d rows%s
                """.formatted(title, subtitle, from, to, rows.size(), landscape ? ", landscape" : "");
    }

    /**
     * Builds a {@link Report}. Only the title and at least one column are required.
     *
     * @param <T> the row's type
     */
    public static final class Builder<T extends Comparable<? super T>> {
        private String title;
        private String subtitle;
        private LocalDate from;
        private LocalDate to;
        private List<T> rows = List.of();
        private Map<String, Function<T, ?>> columns = Map.of();
        private boolean landscape;
        private char separator = ';';
        private int limit = Integer.MAX_VALUE;

        private Builder() {
        }

        public Builder<T> title(String title) {
            this.title = title;
            return this;
        }

        public Builder<T> subtitle(String subtitle) {
            this.subtitle = subtitle;
            return this;
        }

        public Builder<T> from(LocalDate from) {
            this.from = from;
            return this;
        }

        public Builder<T> to(LocalDate to) {
            this.to = to;
            return this;
        }

        public Builder<T> rows(List<T> rows) {
            this.rows = rows;
            return this;
        }

        public Builder<T> columns(Map<String, Function<T, ?>> columns) {
            this.columns = columns;
            return this;
        }

        public Builder<T> landscape(boolean landscape) {
            this.landscape = landscape;
            return this;
        }

        public Builder<T> separator(char separator) {
            this.separator = separator;
            return this;
        }

        public Builder<T> limit(int limit) {
            this.limit = limit;
            return this;
        }

        /**
         * Checks the values and creates the report.
         *
         * @throws NullPointerException if title, rows or columns are null
         * @throws IllegalStateException if the values don't fit together
         */
        public Report<T> build() {
            Objects.requireNonNull(title, "title");
            Objects.requireNonNull(rows, "rows");
            Objects.requireNonNull(columns, "columns");
            if (title.isBlank()) {
                throw new IllegalStateException("title must not be blank");
            }
            if (columns.isEmpty()) {
                throw new IllegalStateException("at least one column is needed");
            }
            if (from != null && to != null && from.isAfter(to)) {
                throw new IllegalStateException("from (" + from + ") is after to (" + to + ")");
            }
            if (separator == '"' || separator == '\r' || separator == '\n') {
                throw new IllegalStateException("separator must not be a quote or a line end");
            }
            if (limit < 0) {
                throw new IllegalStateException("limit must not be negative: " + limit);
            }
            return new Report<>(this);
        }
    }
}
