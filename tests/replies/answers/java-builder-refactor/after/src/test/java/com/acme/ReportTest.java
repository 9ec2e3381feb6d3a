package com.acme;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ReportTest {
    private static Report.Builder<String> valid() {
        return Report.<String>builder()
                .title("Städte")
                .subtitle("alle")
                .from(LocalDate.of(2024, 1, 1))
                .to(LocalDate.of(2024, 12, 31))
                .rows(List.of("Köln;Bonn", "Aachen"))
                .columns(Map.of("name", s -> s))
                .landscape(false)
                .separator(';')
                .limit(10);
    }

    @Test
    void csvIsSortedAndQuoted() {
        var report = valid().build();
        assertEquals("name\r\nAachen\r\n\"Köln;Bonn\"\r\n", report.toCsv());
    }

    @Test
    void titleIsRequired() {
        assertThrows(NullPointerException.class, () -> valid().title(null).build());
        assertThrows(IllegalStateException.class, () -> valid().title(" ").build());
    }

    @Test
    void columnsAreRequired() {
        assertThrows(IllegalStateException.class, () -> valid().columns(Map.of()).build());
    }

    @Test
    void fromMustNotBeAfterTo() {
        assertThrows(IllegalStateException.class, () -> valid().from(LocalDate.of(2025, 1, 1)).build());
    }

    @Test
    void limitMustNotBeNegative() {
        assertThrows(IllegalStateException.class, () -> valid().limit(-1).build());
    }

    @Test
    void separatorMustNotBeAQuote() {
        assertThrows(IllegalStateException.class, () -> valid().separator('"').build());
    }
}
